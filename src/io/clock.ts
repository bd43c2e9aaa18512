import { performance } from "node:perf_hooks";
import { setTimeout as delay } from "node:timers/promises";

/** The only source of time for what is tested under a fake clock. */
export interface Clock {
  /** Wall clock, milliseconds since 1970. May step. */
  now(): number;
  /** Monotonic, milliseconds since an arbitrary point. Never steps back. */
  monotonic(): number;
  /** Resolves after `ms`; rejects with the signal's reason when aborted. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  sleep: (ms, signal) => delay(ms, undefined, signal ? { signal } : {}),
};

/** ISO 8601 UTC, as every document of the product writes times. */
export function iso(ms: number): string {
  return new Date(ms).toISOString();
}
