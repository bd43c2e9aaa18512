import {
  chmodSync,
  closeSync,
  existsSync,
  fchmodSync,
  fsyncSync,
  linkSync,
  mkdirSync,
  openSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  writeSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { meshError } from "../errors.ts";

export class StateNotWritable extends meshError(
  "state-not-writable",
  "retry",
  (f: { file: string; why: string }) =>
    `${f.file}: cannot be written (${f.why}); free space or make the file system writable`,
) {}

export class AlreadyRunning extends meshError(
  "already-running",
  "stalled",
  (f: { pid: number; dir: string }) =>
    `another mesh-host (pid ${f.pid}) works in ${f.dir}; stop it first, or give this one another --root`,
) {}

function syncFolder(dir: string): void {
  const fd = openSync(dir, "r");
  try {
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}

/** Temp file, fsync, rename, fsync of the folder (0600). With `previous`, the copy before stays as `<file>.prev`. */
export function writeDurably(file: string, text: string, options: { previous?: boolean } = {}): void {
  const temp = `${file}.tmp`;
  try {
    const fd = openSync(temp, "w", 0o600);
    try {
      fchmodSync(fd, 0o600);
      writeSync(fd, text);
      fsyncSync(fd);
    } finally {
      closeSync(fd);
    }
    if (options.previous && existsSync(file)) {
      // A link, not a rename: at no point is there neither the old nor the new.
      rmSync(`${file}.prev.tmp`, { force: true });
      linkSync(file, `${file}.prev.tmp`);
      renameSync(`${file}.prev.tmp`, `${file}.prev`);
    }
    renameSync(temp, file);
    syncFolder(dirname(file));
  } catch (cause) {
    throw new StateNotWritable(
      { file, why: (cause as NodeJS.ErrnoException).code ?? String(cause) },
      { cause },
    );
  }
}

/** Null when there is none. */
export function readIfThere(file: string): string | null {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
    throw error;
  }
}

/** Moves a file that cannot be used out of the way and keeps it. Returns where it is now. */
export function setAside(file: string): string {
  for (let n = 1; ; n++) {
    const to = `${file}.bad-${n}`;
    if (existsSync(to)) continue;
    renameSync(file, to);
    return to;
  }
}

/** Makes the folder (0700) and what is missing above it (0755), whatever the umask. */
export function makePrivateDir(dir: string): void {
  const first = mkdirSync(dir, { recursive: true });
  for (let made = dirname(dir); first !== undefined && made.startsWith(first); made = dirname(made))
    chmodSync(made, 0o755);
  const fd = openSync(dir, "r");
  try {
    fchmodSync(fd, 0o700);
  } finally {
    closeSync(fd);
  }
}

/** One life of a process, told apart from any other that had or will have its pid. */
export function incarnation(pid: number): string | null {
  const stat = readIfGone(`/proc/${pid}/stat`);
  if (stat === null) return null;
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  if (fields[0] === "Z" || fields[0] === "X") return null;
  const boot = readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
  return [boot, readlinkSync("/proc/self/ns/pid"), pid, fields[19]].join(" ");
}

function readIfGone(file: string): string | null {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return null;
  }
}

/** The pid that holds the lock of `dir`, null when nobody lives that does. */
export function lockHolder(dir: string): number | null {
  const text = readIfThere(join(dir, "lock"));
  if (text === null) return null;
  const pid = Number(text.split(" ")[2]);
  return Number.isInteger(pid) && incarnation(pid) === text ? pid : null;
}

export interface Lock {
  /** False when the lock is no longer this process's (someone removed the folder). */
  held(): boolean;
  free(): void;
}

/**
 * Takes `dir` for this process alone. The holder is named by its incarnation, so a killed holder blocks nobody and a
 * reused pid fools nobody. Throws AlreadyRunning.
 */
export function takeLock(dir: string): Lock {
  const lock = join(dir, "lock");
  const mine = incarnation(process.pid)!;
  const temp = join(dir, `lock.${process.pid}`);
  writeDurably(temp, mine);
  try {
    for (;;) {
      try {
        linkSync(temp, lock);
        break;
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
      }
      const holder = lockHolder(dir);
      if (holder !== null) throw new AlreadyRunning({ pid: holder, dir });
      removeStale(dir, lock);
    }
  } finally {
    rmSync(temp, { force: true });
  }
  const held = () => readIfGone(lock) === mine;
  return {
    held,
    free: () => {
      if (held()) rmSync(lock, { force: true });
    },
  };
}

/** Takes the stale lock away. What was moved is looked at again: when another just took the lock, it is put back. */
function removeStale(dir: string, lock: string): void {
  const moved = join(dir, `lock.stale.${process.pid}`);
  const before = readIfGone(lock);
  try {
    renameSync(lock, moved);
  } catch {
    return;
  }
  if (readIfGone(moved) !== before) {
    try {
      linkSync(moved, lock);
    } catch {
      // A third one has it by now.
    }
  }
  rmSync(moved, { force: true });
}
