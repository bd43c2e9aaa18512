import { DiscardPolicy, nanos, RetentionPolicy, StorageType, type StreamConfig } from "nats";
import { type Broker, brokerFailure } from "../io/nats.ts";
import { BUCKETS, DECLARATIONS_STREAM, OBJECTS_STREAM, STREAMS } from "./names.ts";

const DAY = 24 * 3_600_000;

/**
 * When the server made each stream (its own ISO time): another time than before means that its store was wiped.
 * `fresh` are those that this call had to make.
 */
export interface StreamsState {
  created: Record<string, string>;
  fresh: string[];
}

/**
 * Makes the streams that are absent, and leaves those that are there. Safe when two controllers do it at once.
 * @param options.replicas copies of each stream in a cluster (MESH_REPLICAS)
 */
export async function ensureStreams(
  broker: Broker,
  options: { replicas?: number } = {},
): Promise<StreamsState> {
  const manager = await broker.manager();
  const state: StreamsState = { created: {}, fresh: [] };
  for (const config of streamConfigs(options.replicas ?? 1)) {
    const info = await manager.streams.info(config.name).catch((error: unknown) => {
      if (brokerFailure(error) === "no-stream") return null;
      throw error;
    });
    if (!info) state.fresh.push(config.name);
    state.created[config.name] = (info ?? (await manager.streams.add(config))).created;
  }
  return state;
}

/**
 * Keeps the streams there: at each connect and every `every` ms. `onState` hears of each look, in order;
 * when it finds `fresh` ones, or other `created` times than it saved, everything wanted is published again.
 */
export function keepStreams(
  broker: Broker,
  options: {
    replicas?: number;
    every?: number;
    signal: AbortSignal;
    onState(state: StreamsState): void | Promise<void>;
    onError?(error: unknown): void;
  },
): void {
  let last: Promise<void> = Promise.resolve();
  const look = () => {
    last = last
      .then(async () => {
        if (!broker.status.connected || options.signal.aborted) return;
        await options.onState(await ensureStreams(broker, options));
      })
      .catch((error: unknown) => options.onError?.(error));
  };
  const off = broker.onConnect(look);
  const timer = setInterval(look, options.every ?? 15_000);
  options.signal.addEventListener(
    "abort",
    () => {
      off();
      clearInterval(timer);
    },
    { once: true },
  );
}

function streamConfigs(replicas: number): Array<Partial<StreamConfig> & { name: string }> {
  const common = { storage: StorageType.File, num_replicas: replicas };
  return [
    {
      ...common,
      name: STREAMS.control,
      subjects: ["mesh.control.>"],
      discard: DiscardPolicy.Old,
      max_age: nanos(7 * DAY),
      max_msgs_per_subject: 1_000,
    },
    {
      // Bounded per subject and never as a whole: a node that reports often then pushes out its own older reports, not the
      // only one of a quiet node. A report holds the whole state, so the newest of each node is what must survive.
      ...common,
      name: STREAMS.events,
      subjects: ["mesh.events.*.>"],
      discard: DiscardPolicy.Old,
      max_age: nanos(7 * DAY),
      max_msgs_per_subject: 64,
      duplicate_window: nanos(10 * 60_000),
    },
    {
      ...common,
      name: STREAMS.builds,
      subjects: ["mesh.builds.*"],
      retention: RetentionPolicy.Workqueue,
      discard: DiscardPolicy.New,
      discard_new_per_subject: true,
      max_msgs_per_subject: 1,
    },
    {
      // As the library and the `nats kv` tool make a bucket with a history of one.
      ...common,
      name: DECLARATIONS_STREAM,
      subjects: [`$KV.${BUCKETS.declarations}.>`],
      discard: DiscardPolicy.New,
      max_msgs_per_subject: 1,
      allow_rollup_hdrs: true,
      allow_direct: true,
      deny_delete: true,
    },
    {
      ...common,
      name: OBJECTS_STREAM,
      subjects: [`$O.${BUCKETS.objects}.C.>`, `$O.${BUCKETS.objects}.M.>`],
      discard: DiscardPolicy.New,
      allow_rollup_hdrs: true,
      allow_direct: true,
    },
  ];
}
