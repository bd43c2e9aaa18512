import { NotActive } from "../inventory/plan-lock.ts";
import type { Clock } from "../io/clock.ts";
import type { Log } from "./log.ts";
import { backoff } from "./runner.ts";

/** Runs `run` until it works, with growing waits, or until the epoch is over. Never rejects. `what` is for the log. */
export type Persist = (what: string, run: () => Promise<void>) => Promise<void>;

export function createPersist(deps: {
  clock: Clock;
  log: Log;
  signal: AbortSignal;
  /** The epoch turned out to be over. */
  onLost(why: string): void;
}): Persist {
  const { clock, log, signal } = deps;
  return async (what, run) => {
    const tries = backoff(clock, 100, 5_000);
    while (!signal.aborted) {
      try {
        return await run();
      } catch (error) {
        if (error instanceof NotActive) return deps.onLost(error.message);
        if (!signal.aborted) log.warn({ err: error }, `${what} failed, it is tried again`);
        await tries.pause(signal);
      }
    }
  };
}
