import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { z } from "zod";

/** One life of a process: a pid says nothing without the boot, the namespace and the start time (clock ticks since boot). */
export const Incarnation = z.strictObject({
  boot: z.string(),
  ns: z.string(),
  pid: z.int().min(2),
  start: z.int().min(0),
});
export type Incarnation = z.infer<typeof Incarnation>;

export interface ProcStat {
  pid: number;
  state: string;
  ppid: number;
  session: number;
  start: number;
}

/** What supervision reads of /proc; tests bring another boot id or other processes. */
export interface ProcFs {
  bootId(): string;
  pidNamespace(): string;
  /** Seconds since boot. */
  uptime(): number;
  pids(): number[];
  /** null: no such process. */
  stat(pid: number): ProcStat | null;
  /** Arguments; null when it is gone or hidden. */
  args(pid: number): string[] | null;
  /** What each descriptor points at ("socket:[7]", "/a/file"); empty when gone or not ours to read. */
  descriptors(pid: number): Map<number, string>;
  /** Text of /proc/net/tcp and /proc/net/tcp6. */
  tcp(): string;
}

/** USER_HZ, 100 on every Linux architecture that Node runs on. */
export const TICKS_PER_SECOND = 100;

function attempt<T>(read: () => T, otherwise: T): T {
  try {
    return read();
  } catch {
    return otherwise;
  }
}

/** `comm` may hold spaces and brackets, so the fields are counted from the last bracket (proc(5)). */
export function parseStat(text: string): ProcStat | null {
  const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
  const pid = Number.parseInt(text, 10);
  const start = Number(fields[19]);
  if (!Number.isInteger(pid) || !Number.isInteger(start)) return null;
  return { pid, state: fields[0] ?? "?", ppid: Number(fields[1]), session: Number(fields[3]), start };
}

export function systemProc(root = "/proc"): ProcFs {
  const text = (path: string) => readFileSync(`${root}/${path}`, "utf8");
  // Neither can change while this program lives.
  const boot = text("sys/kernel/random/boot_id").trim();
  const namespace = attempt(() => readlinkSync(`${root}/self/ns/pid`), "pid:[?]");
  return {
    bootId: () => boot,
    pidNamespace: () => namespace,
    uptime: () => Number.parseFloat(text("uptime")),
    pids: () =>
      readdirSync(root)
        .filter((name) => name >= "1" && name < ":")
        .map(Number)
        .filter(Number.isInteger),
    stat: (pid) => attempt(() => parseStat(text(`${pid}/stat`)), null),
    args: (pid) => attempt(() => text(`${pid}/cmdline`).split("\0").slice(0, -1), null),
    descriptors: (pid) => {
      const found = new Map<number, string>();
      for (const name of attempt(() => readdirSync(`${root}/${pid}/fd`), [] as string[])) {
        const target = attempt(() => readlinkSync(`${root}/${pid}/fd/${name}`), "");
        if (target) found.set(Number(name), target);
      }
      return found;
    },
    tcp: () => attempt(() => text("net/tcp"), "") + attempt(() => text("net/tcp6"), ""),
  };
}

export const ended = (stat: ProcStat | null): boolean =>
  stat === null || stat.state === "Z" || stat.state === "X";

/** The incarnation that has this pid now, or null. */
export function incarnationOf(proc: ProcFs, pid: number): Incarnation | null {
  const stat = proc.stat(pid);
  if (!stat || ended(stat)) return null;
  return { boot: proc.bootId(), ns: proc.pidNamespace(), pid, start: stat.start };
}

export function isAlive(proc: ProcFs, who: Incarnation | null): who is Incarnation {
  if (!who || who.boot !== proc.bootId() || who.ns !== proc.pidNamespace()) return false;
  const stat = proc.stat(who.pid);
  return stat !== null && !ended(stat) && stat.start === who.start;
}

/** How long it has been (or had been, asked at its end) up, in ms, free of steps of the wall clock. */
export function upFor(proc: ProcFs, who: Incarnation): number {
  return Math.max(0, proc.uptime() * 1000 - (who.start * 1000) / TICKS_PER_SECOND);
}

/**
 * Signals exactly this incarnation; false when it is gone. Its identity is read again directly before, because
 * Node has no pidfd: what is left is the time between two system calls.
 */
export function signal(proc: ProcFs, who: Incarnation, name: NodeJS.Signals): boolean {
  if (!isAlive(proc, who)) return false;
  try {
    process.kill(who.pid, name);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ESRCH") return false;
    throw error;
  }
}
