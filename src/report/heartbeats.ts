import type { Broker } from "../io/nats.ts";
import { readHeartbeat } from "./read.ts";
import type { Heartbeat } from "./schema.ts";

/** A heartbeat with when it was heard here, in ms since 1970 by this machine's clock. */
export interface Heard {
  beat: Heartbeat;
  heardAt: number;
}

/**
 * Hears all heartbeats and hands them on in batches, the newest of each node, every `every` ms when there are any.
 * A batch that throws is told to `onError` and forgotten: another beat follows.
 */
export function watchHeartbeats(
  broker: Broker,
  options: {
    every?: number;
    signal: AbortSignal;
    onBatch(beats: Heard[]): void | Promise<void>;
    onError?(error: unknown): void;
  },
): void {
  const { signal } = options;
  const newest = new Map<string, Heard>();
  let subscribed = false;
  let busy = false;

  const off = broker.onConnect(() => {
    if (subscribed) return;
    subscribed = true;
    const subscription = broker.connection.subscribe("mesh.heartbeat.*", {
      callback: (error, message) => {
        const beat = error ? "" : readHeartbeat(message);
        if (typeof beat !== "string") newest.set(beat.node, { beat, heardAt: Date.now() });
      },
    });
    signal.addEventListener("abort", () => subscription.unsubscribe(), { once: true });
  });
  const timer = setInterval(async () => {
    if (busy || newest.size === 0) return;
    busy = true;
    const batch = [...newest.values()];
    newest.clear();
    try {
      await options.onBatch(batch);
    } catch (error) {
      options.onError?.(error);
    } finally {
      busy = false;
    }
  }, options.every ?? 250);
  signal.addEventListener(
    "abort",
    () => {
      off();
      clearInterval(timer);
    },
    { once: true },
  );
}
