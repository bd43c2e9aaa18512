import { readFileSync } from "node:fs";

const TICK_MS = 10;

/** CPU of all children of this process that have ended, ms; in steps of 10. */
export function childCpu(): number {
  const [, , , , cutime, cstime] = statOf("self").slice(9);
  return (Number(cutime) + Number(cstime)) * TICK_MS;
}

/** CPU of a running process since its start, ms. */
export function cpuOf(pid: number): number {
  const [nanoseconds] = readFileSync(`/proc/${pid}/schedstat`, "utf8").split(" ");
  const threads = readThreads(pid);
  return Math.max(Number(nanoseconds) / 1e6, threads);
}

function readThreads(pid: number): number {
  const [utime, stime] = statOf(String(pid)).slice(11);
  return (Number(utime) + Number(stime)) * TICK_MS;
}

/** Resident memory, MiB: now, and at most since the start. */
export function memoryOf(pid: number): { rss: number; peak: number } {
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  const field = (name: string) => Number(new RegExp(`${name}:\\s+(\\d+)`).exec(status)?.[1] ?? 0) / 1024;
  return { rss: field("VmRSS"), peak: field("VmHWM") };
}

/** Memory that a process alone answers for, KiB: its share of what it shares. */
export function pssOf(pid: number): number {
  return Number(/^Pss:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, "utf8"))?.[1] ?? Number.NaN);
}

/** Fields of /proc/PID/stat after the name, from `state` (3) on. */
function statOf(pid: string): string[] {
  const text = readFileSync(`/proc/${pid}/stat`, "utf8");
  return text.slice(text.lastIndexOf(")") + 2).split(" ");
}
