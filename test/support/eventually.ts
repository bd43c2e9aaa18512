import { setTimeout as delay } from "node:timers/promises";

/**
 * Tries `fn` until it returns something truthy (or nothing at all, as an assertion does) without throwing, and returns that.
 * @param options.within milliseconds until the last failure is thrown
 */
export async function eventually<T>(
  fn: () => T | Promise<T>,
  options: { within?: number; every?: number } = {},
): Promise<Exclude<T, false | null>> {
  const until = Date.now() + (options.within ?? 10_000);
  for (;;) {
    let failure: unknown;
    try {
      const value = await fn();
      if (value === undefined || value) return value as Exclude<T, false | null>;
      failure = new Error(`still ${JSON.stringify(value)} after ${options.within ?? 10_000} ms`);
    } catch (error) {
      failure = error;
    }
    if (Date.now() > until) throw failure;
    await delay(options.every ?? 20);
  }
}
