import { type ChildProcess, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { chown, mkdir, open, readFile, readlink, realpath, rename, rm, writeFile } from "node:fs/promises";
import { createServer, type Socket } from "node:net";
import { dirname, join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { meshError } from "../errors.ts";
import type { DatabaseAccount } from "./account.ts";
import type { PostgresBinaries } from "./postgres-binaries.ts";

export { databaseAccount, placeForDatabase, reachableBy } from "./account.ts";
export { type PostgresBinaries, preparePostgresBinaries } from "./postgres-binaries.ts";

const USER = "mesh";
/** A socket's path has at most 107 bytes; Postgres appends `/.s.PGSQL.<port>`. */
const SOCKET_DIR_MAX = 90;

export class PostgresFailed extends meshError(
  "postgres-failed",
  "retry",
  (f: { what: string; dataDir: string; last: string }) =>
    `${f.what} of the database in ${f.dataDir} failed: ${f.last || "it said nothing"}`,
) {}

export class ClusterOfOtherVersion extends meshError(
  "cluster-of-other-version",
  "stalled",
  (f: { dataDir: string; found: string; ours: string }) =>
    `${f.dataDir} was made by Postgres ${f.found}, this is ${f.ours}; run the release that made it, or start anew with \`mesh down --purge\``,
) {}

export interface RunningPostgres {
  pid: number;
  /** With user and password, over loopback TCP. */
  url: string;
  port: number;
  /** Ends it as `pg_ctl stop -m fast` does, harder after 10 s. Resolves once it is gone. */
  stop(): Promise<void>;
}

export interface StartOptions {
  binaries: PostgresBinaries;
  dataDir: string;
  /** 0: any free one. */
  port: number;
  /** Null, or too long a path: no unix socket. */
  socketDir: string | null;
  /** Appended to. */
  logFile: string;
  /** More settings, as `-c name=value`. */
  settings?: Record<string, string>;
  /** Ends when the calling process ends, however that ends. Without it the server outlives the caller. */
  endsWithCaller?: boolean;
}

/**
 * Makes a cluster in `dataDir` (all or nothing) with user "mesh", database "postgres" and a random password in
 * `<dataDir>.password` (0600). Does nothing where one is already. `sync: false` for tests: no fsync.
 */
export async function initCluster(options: {
  binaries: PostgresBinaries;
  dataDir: string;
  sync?: boolean;
}): Promise<void> {
  const { binaries, dataDir } = options;
  if (existsSync(join(dataDir, "PG_VERSION"))) return;
  const fresh = `${dataDir}.new`;
  const pwfile = `${fresh}.pw`;
  const password = randomBytes(24).toString("base64url");
  await mkdir(dirname(dataDir), { recursive: true });
  await rm(fresh, { recursive: true, force: true });
  await mkdir(fresh, { mode: 0o700 });
  await writeFile(pwfile, password, { mode: 0o600 });
  await own(fresh, binaries.account);
  await own(pwfile, binaries.account);
  try {
    await initdb(binaries, fresh, pwfile, options.sync ?? true);
    await writeFile(`${dataDir}.password`, password, { mode: 0o600 });
    await rename(fresh, dataDir);
  } finally {
    await rm(pwfile, { force: true });
    await rm(fresh, { recursive: true, force: true });
  }
}

async function initdb(
  binaries: PostgresBinaries,
  dataDir: string,
  pwfile: string,
  sync: boolean,
): Promise<void> {
  const args = ["-D", dataDir, "-U", USER, `--pwfile=${pwfile}`, "--auth=scram-sha-256", "--encoding=UTF8"];
  args.push("--locale=C", "--set=timezone=UTC", "--set=log_timezone=UTC", ...(sync ? [] : ["--no-sync"]));
  const child = spawn(join(binaries.dir, "bin", "initdb"), args, {
    ...asAccount(binaries.account),
    stdio: ["ignore", "pipe", "pipe"],
  });
  let said = "";
  child.stdout.on("data", (chunk) => {
    said += chunk;
  });
  child.stderr.on("data", (chunk) => {
    said += chunk;
  });
  const [code] = await once(child, "close");
  if (code !== 0) throw new PostgresFailed({ what: "making", dataDir, last: lastLine(said) });
}

/** Starts the server and resolves once it takes connections (at most 30 s). A leftover of a killed one is waited for. */
export async function startPostgres(options: StartOptions): Promise<RunningPostgres> {
  const { binaries, dataDir } = options;
  await checkVersion(binaries, dataDir);
  const deadline = Date.now() + 30_000;
  for (;;) {
    await clearForeignPidFile(dataDir);
    const port = options.port || (await freePort());
    const started = await launch(options, port, deadline);
    if ("pid" in started) return running(dataDir, port, started.pid, await urlOf(dataDir, port));
    // The children of a server that was killed hold its shared memory for a moment; a port may be taken in between.
    if (Date.now() > deadline - 20_000)
      throw new PostgresFailed({ what: "starting", dataDir, last: started.last });
    await delay(250);
  }
}

/** The server that runs on `dataDir` now, if there is one. */
export async function findPostgres(dataDir: string): Promise<RunningPostgres | null> {
  const file = await readPidFile(dataDir);
  if (file?.state !== "ready" || !(await isServerOf(file.pid, dataDir))) return null;
  return running(dataDir, file.port, file.pid, await urlOf(dataDir, file.port));
}

async function launch(
  options: StartOptions,
  port: number,
  deadline: number,
): Promise<{ pid: number } | { last: string }> {
  const { dataDir, binaries } = options;
  const log = await open(options.logFile, "a", 0o600);
  const from = (await log.stat()).size;
  const child = spawnServer(options, port, log.fd, await socketDirOf(options, binaries.account));
  await log.close();
  let ended = child.exitCode !== null;
  const over = () => {
    ended = true;
  };
  child.once("exit", over).once("error", over);
  while (!ended && Date.now() < deadline) {
    const file = await readPidFile(dataDir);
    if (file?.state === "ready" && file.port === port && (await isServerOf(file.pid, dataDir)))
      return { pid: file.pid };
    await delay(20);
  }
  child.kill("SIGQUIT");
  const said = (await readFile(options.logFile)).subarray(from).toString();
  return { last: lastLine(said) };
}

function spawnServer(
  options: StartOptions,
  port: number,
  logFd: number,
  socketDir: string | null,
): ChildProcess {
  const settings: Record<string, string> = {
    listen_addresses: "127.0.0.1",
    port: String(port),
    unix_socket_directories: socketDir ?? "",
    max_connections: "100",
    ...options.settings,
  };
  const command = join(options.binaries.dir, "bin", "postgres");
  const args = ["-D", options.dataDir, ...Object.entries(settings).flatMap(([k, v]) => ["-c", `${k}=${v}`])];
  const common = { ...asAccount(options.binaries.account), detached: true, cwd: "/" };
  if (!options.endsWithCaller) {
    const child = spawn(command, args, { ...common, stdio: ["ignore", logFd, logFd] });
    child.unref();
    return child;
  }
  const child = spawn("/bin/sh", ["-c", ENDS_WITH_STDIN, "watch-postgres", command, ...args], {
    ...common,
    stdio: ["pipe", logFd, logFd],
  });
  child.unref();
  (child.stdin as Socket | null)?.unref();
  return child;
}

/**
 * The pipe on stdin closes when the caller ends, also by SIGKILL. A new session keeps the terminal's Ctrl-C from both,
 * so that the server ends once, by this.
 */
const ENDS_WITH_STDIN = `exec 3<&0
"$@" </dev/null 3<&- & pid=$!
( cat <&3 >/dev/null; kill -QUIT $pid 2>/dev/null ) & reader=$!
exec 3<&-
wait $pid; code=$?
kill $reader 2>/dev/null
exit $code`;

function asAccount(account: DatabaseAccount | null): {
  env: Record<string, string>;
  uid?: number;
  gid?: number;
} {
  // Nothing of the caller's environment (credentials) reaches the server; spawn with a uid drops root's extra groups.
  const env = { PATH: "/usr/bin:/bin", LANG: "C", TZ: "UTC" };
  return account ? { env, uid: account.uid, gid: account.gid } : { env };
}

async function socketDirOf(options: StartOptions, account: DatabaseAccount | null): Promise<string | null> {
  if (!options.socketDir || options.socketDir.length > SOCKET_DIR_MAX) return null;
  await mkdir(options.socketDir, { recursive: true, mode: 0o755 });
  await own(options.socketDir, account);
  return options.socketDir;
}

async function checkVersion(binaries: PostgresBinaries, dataDir: string): Promise<void> {
  const found = (await readFile(join(dataDir, "PG_VERSION"), "utf8")).trim();
  const ours = binaries.version.split(".")[0]!;
  if (found !== ours) throw new ClusterOfOtherVersion({ dataDir, found, ours });
}

interface PidFile {
  pid: number;
  port: number;
  state: string;
}

/** postmaster.pid: pid, folder, start time, port, socket folder, address, shared memory, state. */
async function readPidFile(dataDir: string): Promise<PidFile | null> {
  const text = await readFile(join(dataDir, "postmaster.pid"), "utf8").catch(() => null);
  const lines = text?.split("\n");
  const pid = Number(lines?.[0]);
  return lines && pid > 0 ? { pid, port: Number(lines[3]), state: (lines[7] ?? "").trim() } : null;
}

/** A pid alone proves nothing after a reboot: the server works in its data folder. */
async function isServerOf(pid: number, dataDir: string): Promise<boolean> {
  try {
    return (await readlink(`/proc/${pid}/cwd`)) === (await realpath(dataDir));
  } catch {
    // Not Linux, or not ours to look at.
    return !existsSync("/proc/self/cwd") && isAlive(pid);
  }
}

/** Postgres takes any living process of its account for the former server: after a reboot the pid may be another's. */
async function clearForeignPidFile(dataDir: string): Promise<void> {
  const file = await readPidFile(dataDir);
  if (file && !(await isServerOf(file.pid, dataDir)))
    await rm(join(dataDir, "postmaster.pid"), { force: true });
}

function running(dataDir: string, port: number, pid: number, url: string): RunningPostgres {
  return { pid, port, url, stop: () => stopServer(dataDir, pid) };
}

async function stopServer(dataDir: string, pid: number): Promise<void> {
  const steps: Array<[NodeJS.Signals, number]> = [
    ["SIGINT", 10_000],
    ["SIGQUIT", 5_000],
    ["SIGKILL", 5_000],
  ];
  for (const [signal, waitMs] of steps) {
    if (!(await isServerOf(pid, dataDir))) return;
    process.kill(pid, signal);
    for (const until = Date.now() + waitMs; Date.now() < until; await delay(20)) {
      if (!(await isServerOf(pid, dataDir))) return;
    }
  }
}

async function urlOf(dataDir: string, port: number): Promise<string> {
  const password = (await readFile(`${dataDir}.password`, "utf8")).trim();
  return `postgres://${USER}:${encodeURIComponent(password)}@127.0.0.1:${port}/postgres`;
}

async function own(path: string, account: DatabaseAccount | null): Promise<void> {
  if (account) await chown(path, account.uid, account.gid);
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}

/** A loopback port that is free now. */
async function freePort(): Promise<number> {
  const server = createServer();
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as { port: number };
  server.close();
  await once(server, "close");
  return port;
}

function lastLine(text: string): string {
  return text.trim().split("\n").at(-1)?.trim() ?? "";
}
