const STEP_MS = 1_000;

/**
 * Tells when the wall clock last stepped against the monotonic one. Call what it returns before every run of plan work; steps
 * below a second are let be.
 * @returns ISO time of the last step by the clock after it, null: none since this watch began
 */
export function watchSteps(clock: { now(): number; monotonic(): number }): () => string | null {
  let offset = clock.now() - clock.monotonic();
  let steppedAt: string | null = null;
  return () => {
    const now = clock.now();
    const moved = now - clock.monotonic() - offset;
    if (Math.abs(moved) >= STEP_MS) {
      offset += moved;
      steppedAt = new Date(now).toISOString();
    }
    return steppedAt;
  };
}
