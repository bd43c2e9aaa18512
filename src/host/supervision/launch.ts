import { type ChildProcess, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import {
  accessSync,
  closeSync,
  constants,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeSync,
} from "node:fs";
import { basename, isAbsolute, join, resolve } from "node:path";
import { CommandMissing, CommandNotExecutable, SpawnFailed, WorkingFolderMissing } from "./errors.ts";
import { type Incarnation, incarnationOf, type ProcFs } from "./proc.ts";
import type { ProcessSpec } from "./types.ts";

/** Stands in the arguments of every parent, before the path of its run: by the two a host finds what it started. */
export const MARK = "mesh-run";

/**
 * The parent of one process. It takes the run by making `base.pid`, which only one can do (noclobber is O_EXCL): a host that
 * gave the run up made that file first, and then nothing is started. A caught signal would end it before its command, so it
 * catches what it may and forks with the defaults. The subshell's own pid is read from /proc, since `$$` stays the parent's.
 * An exit file counts once it holds a whole line, and the line is one write, so it needs no rename (and no `mv`, another exec).
 */
const SCRIPT = `umask 022; unset PWD OLDPWD SHLVL
trap : HUP INT QUIT TERM USR1 USR2
r=$1 c=$2; shift 2
set -C
echo $$ >"$r.pid" || exit 125
while [ "$c" -gt 0 ]; do echo $$ >|"$1/cgroup.procs"; shift; c=$((c-1)); done
( read -r p x </proc/self/stat; echo "$p" >"$r.main"; exec "$@" )
echo $? >"$r.exit"`;

/** The files of runs are in one folder, so that one inotify watch sees every exit. */
export function newBase(runs: string, id: string, key: string): string {
  return join(runs, `${id}~${key}~${randomBytes(16).toString("hex")}`);
}

/** What the name of a run's files says. */
export function parseBase(base: string): { id: string; key: string } | null {
  const [id, key, nonce] = basename(base).split("~");
  return id && key && nonce ? { id, key } : null;
}

function readNumber(file: string): number | null | "unfinished" {
  try {
    const text = readFileSync(file, "utf8");
    return /^\d+\n$/.test(text) ? Number(text) : "unfinished";
  } catch {
    return null;
  }
}

export const readPid = (base: string) => readNumber(`${base}.pid`);
export const readMain = (base: string) => readNumber(`${base}.main`);
export function readExit(base: string): { code: number; at: number } | null {
  const code = readNumber(`${base}.exit`);
  return typeof code === "number" ? { code, at: statSync(`${base}.exit`).mtimeMs } : null;
}

export function dropRunFiles(base: string): void {
  for (const end of ["pid", "main", "exit"]) rmSync(`${base}.${end}`, { force: true });
}

/** Gives a run up before its parent took it; false when the parent was first (or once was). */
export function giveUp(base: string): boolean {
  try {
    const fd = openSync(`${base}.pid`, "wx", 0o600);
    writeSync(fd, "0\n");
    closeSync(fd);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return readPid(base) === 0;
    throw error;
  }
}

/** How long the files of a run that nobody names are kept: what a parent that was given up must find when it comes late. */
const STALE = 3_600_000;

/** Removes run files that no record names and no parent has, once they are old. */
export function dropStaleRuns(runs: string, named: (base: string) => boolean, now: number): void {
  for (const name of readdirSync(runs)) {
    const file = join(runs, name);
    const base = file.replace(/\.(pid|main|exit)$/, "");
    if (!named(base) && now - statSync(file).mtimeMs > STALE) rmSync(file, { force: true });
  }
}

/** The live parents of all runs under `runs`, by base. One look at all of /proc. */
export function findParents(proc: ProcFs, runs: string): Map<string, Incarnation> {
  const found = new Map<string, Incarnation>();
  for (const pid of proc.pids()) {
    const base = baseInArgs(proc, pid);
    if (!base?.startsWith(`${runs}/`)) continue;
    const who = incarnationOf(proc, pid);
    // Between fork and exec the child of a parent has its arguments too; the parent made the pid file.
    if (who && (!found.has(base) || readPid(base) === pid)) found.set(base, who);
  }
  return found;
}

/** The base that a process has among its arguments, if it is a parent of ours. */
export function baseInArgs(proc: ProcFs, pid: number): string | null {
  const args = proc.args(pid);
  const at = args?.indexOf(MARK) ?? -1;
  return at >= 0 ? (args?.[at + 1] ?? null) : null;
}

/**
 * Says what is wrong before anything is spawned: `sh` would only say 127.
 * @throws CommandMissing, CommandNotExecutable, WorkingFolderMissing
 */
export function preflight(spec: ProcessSpec, path: string): void {
  try {
    if (!statSync(spec.cwd).isDirectory())
      throw new WorkingFolderMissing({ id: spec.id, cwd: spec.cwd, why: "ENOTDIR" });
  } catch (cause) {
    if (cause instanceof WorkingFolderMissing) throw cause;
    const why = (cause as NodeJS.ErrnoException).code ?? "cannot be read";
    throw new WorkingFolderMissing({ id: spec.id, cwd: spec.cwd, why }, { cause });
  }
  const command = spec.command[0]!;
  const tried = command.includes("/")
    ? [isAbsolute(command) ? command : resolve(spec.cwd, command)]
    : path.split(":").map((folder) => resolve(spec.cwd, folder || ".", command));
  const files = tried.filter((file) => {
    try {
      return statSync(file).isFile();
    } catch {
      return false;
    }
  });
  if (files.length === 0) {
    const looked = command.includes("/") ? `cwd ${spec.cwd}` : `PATH ${path}`;
    throw new CommandMissing({ id: spec.id, command, looked });
  }
  const runnable = files.some((file) => {
    try {
      accessSync(file, constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
  if (!runnable) throw new CommandNotExecutable({ id: spec.id, file: files[0]! });
}

/** The command as another account, with that account's groups and none of ours. */
export function asUser(command: string[], user: string, gid: number): string[] {
  return [
    // By its path: PATH is the program's, and may be anything.
    "/usr/bin/setpriv",
    `--reuid=${user}`,
    `--regid=${gid}`,
    "--init-groups",
    "--inh-caps=-all",
    "--",
    ...command,
  ];
}

/** Variables that a shell makes its own; what is declared for them goes around the parent. */
const OF_THE_SHELL = ["PWD", "OLDPWD", "SHLVL", "IFS", "PPID", "OPTIND", "LINENO", "_"];

/** The command with those variables of `env` that would not pass through `sh` as they are. */
function aroundShell(command: string[], env: Record<string, string>): string[] {
  const own = OF_THE_SHELL.filter((name) => env[name] !== undefined).map((name) => `${name}=${env[name]}`);
  return own.length === 0 ? command : ["/usr/bin/env", ...own, ...command];
}

export interface Launch {
  spec: ProcessSpec;
  base: string;
  /** To be executed as it is: account and all. */
  command: string[];
  env: Record<string, string>;
  /** Descriptor of the output file. */
  log: number;
  cgroups: string[];
}

/** Spawns the parent; resolves once the kernel took it. The child's `exit` is the parent's end. */
export async function launch(run: Launch): Promise<ChildProcess> {
  const groups = [`${run.cgroups.length}`, ...run.cgroups];
  const child = spawn(
    "/bin/sh",
    ["-c", SCRIPT, MARK, run.base, ...groups, ...aroundShell(run.command, run.env)],
    {
      cwd: run.spec.cwd,
      env: run.env,
      stdio: ["ignore", run.log, run.log],
      detached: true,
    },
  );
  // Held by nothing: it outlives this host.
  child.unref();
  await new Promise<void>((done, failed) => {
    child.once("spawn", done);
    child.once("error", (cause) =>
      failed(new SpawnFailed({ id: run.spec.id, why: cause.message }, { cause })),
    );
  });
  return child;
}

/**
 * Closes descriptors that this program was started with and that every child would get: those above stderr without
 * close-on-exec. Node and its libraries open all of their own with it, so nobody here knows these.
 * @returns how many were closed
 */
export function closeInherited(): number {
  let closed = 0;
  for (const name of readdirSync("/proc/self/fd")) {
    const fd = Number(name);
    if (!(fd > 2)) continue;
    try {
      const flags = /^flags:\s*([0-7]+)$/m.exec(readFileSync(`/proc/self/fdinfo/${name}`, "utf8"))?.[1];
      if (flags && (Number.parseInt(flags, 8) & 0o2000000) === 0) {
        closeSync(fd);
        closed++;
      }
    } catch {
      // The descriptor of the listing itself.
    }
  }
  return closed;
}
