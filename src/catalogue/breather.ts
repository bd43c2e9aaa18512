import { setImmediate } from "node:timers/promises";

/** Lets others run when the caller has worked for a while: awaited between items of a long list. */
export type Breather = () => Promise<void> | undefined;

export function breather(everyMs = 12): Breather {
  let since = performance.now();
  return () => {
    if (performance.now() - since < everyMs) return undefined;
    return setImmediate().then(() => {
      since = performance.now();
    });
  };
}
