import { performance } from "node:perf_hooks";
import { setImmediate as nextTurn } from "node:timers/promises";

/** Work that can be cut anywhere it yields; the result does not depend on where it is cut. */
export type Work<T> = Generator<void, T>;

export function finish<T>(work: Work<T>): T {
  for (;;) {
    const step = work.next();
    if (step.done) return step.value;
  }
}

/** Finishes the work, giving the event loop a turn at least every `sliceMs` milliseconds (one step may take longer). */
export async function finishInSlices<T>(work: Work<T>, sliceMs = 10): Promise<T> {
  let until = performance.now() + sliceMs;
  for (;;) {
    const step = work.next();
    if (step.done) return step.value;
    if (performance.now() < until) continue;
    await nextTurn();
    until = performance.now() + sliceMs;
  }
}
