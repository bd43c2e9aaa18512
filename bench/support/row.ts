import { performance } from "node:perf_hooks";

/** One measured line. `value` and `limit.value` have the unit `unit`; `reach` is what DESIGN.md asks, in `unit` or as a ratio. */
export interface Row {
  row: string;
  /** Rows of one `family` at rising `size` show how it grows. */
  family?: string;
  size?: number;
  value: number;
  unit: "ms" | "ms CPU" | "MiB" | "% of a core" | "KiB";
  /** The same thing done by the least that could do it, in the same run. */
  limit?: { what: string; value: number };
  reach?: { value: number; of: "value" | "ratio" };
  note?: string;
}

/** Hands a row to bench/main.mjs. */
export function emit(row: Row): void {
  process.stdout.write(`${JSON.stringify(row)}\n`);
}

export function median(values: readonly number[]): number {
  return percentile(values, 50);
}

export function percentile(values: readonly number[], p: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor((sorted.length * p) / 100))] ?? Number.NaN;
}

/** Milliseconds that pass while `work` runs. */
export async function wall(work: () => unknown): Promise<number> {
  const from = performance.now();
  await work();
  return performance.now() - from;
}

/** Milliseconds of CPU that this process uses while `work` runs: a busy machine does not count. */
export async function cpu(work: () => unknown): Promise<number> {
  const from = process.cpuUsage();
  await work();
  const used = process.cpuUsage(from);
  return (used.user + used.system) / 1_000;
}
