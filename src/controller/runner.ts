import type { Clock } from "../io/clock.ts";

/**
 * One run at a time; asks made meanwhile become one further run. The promise of an ask is that of a run that began
 * after the ask, so whoever waits sees the effect of what it asked for.
 */
export interface Runner {
  ask(): Promise<void>;
  /** Refuses new runs and resolves when the one under way has ended. */
  stop(): Promise<void>;
}

export function createRunner(run: () => Promise<void>): Runner {
  let current: Promise<void> | null = null;
  let next: Promise<void> | null = null;
  let stopped = false;

  const begin = (): Promise<void> => {
    const started = run().finally(() => {
      if (current === started) current = null;
    });
    current = started;
    return started;
  };

  return {
    ask() {
      if (stopped) return Promise.resolve();
      if (!current) return begin();
      next ??= current
        .catch(() => undefined)
        .then(() => {
          next = null;
          return stopped ? undefined : begin();
        });
      return next;
    },
    async stop() {
      stopped = true;
      await current?.catch(() => undefined);
      await next?.catch(() => undefined);
    },
  };
}

/** Waits between tries: `first` doubling to `max`, in ms; `reset` after a success. */
export function backoff(clock: Clock, first: number, max: number) {
  let wait = first;
  return {
    async pause(signal: AbortSignal): Promise<void> {
      const ms = wait;
      wait = Math.min(wait * 2, max);
      await clock.sleep(ms, signal).catch(() => undefined);
    },
    reset(): void {
      wait = first;
    },
  };
}
