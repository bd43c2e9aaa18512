import { nodeKey, STREAMS } from "../declaration/names.ts";
import { recordHeartbeats } from "../inventory/heartbeats.ts";
import type { Inventory } from "../inventory/index.ts";
import { NotActive, withEpoch } from "../inventory/plan-lock.ts";
import { readPosition, savePosition } from "../inventory/positions.ts";
import { foldReports } from "../inventory/reports.ts";
import { raiseSequences } from "../inventory/sending.ts";
import type { Fault } from "../io/faults.ts";
import type { Broker } from "../io/nats.ts";
import { type Consumed, type Consumption, consumeStream, type Position } from "../report/consume.ts";
import { type Heard, watchHeartbeats } from "../report/heartbeats.ts";
import type { Log } from "./log.ts";
import type { Persist } from "./persist.ts";

const HEARTBEATS_EVERY = 1_000;
/** A node that was not heard for so long is back when it is heard, ms. */
const SILENCE = 60_000;

export interface FoldingDeps {
  inventory: Inventory;
  epoch: number;
  broker: Broker;
  fault: Fault;
  log: Log;
  persist: Persist;
  signal: AbortSignal;
  onLost(why: string): void;
  /** A report said something that a plan looks at. */
  onProgress(): void;
  /** A sequence of the store was raised: what is wanted is to be published again. */
  onRaised(): void;
  /** Notices on CONTROL, by kind: hints, whoever sent them. */
  onNotices(kinds: ReadonlySet<string>): void;
}

/** Folds EVENTS, CONTROL and heartbeats into the inventory while the epoch lasts; whatever it is given twice counts once. */
export function startFolding(deps: FoldingDeps): { stop(): Promise<void> } {
  const consumptions: Consumption[] = [];
  const consume = async (stream: string, fold: Fold): Promise<void> => {
    const saved = await readPosition(deps.inventory.db, stream);
    if (deps.signal.aborted) return;
    const from = saved && { created: saved.created, sequence: saved.seq };
    const onError = (error: unknown) => {
      if (error instanceof NotActive) deps.onLost(error.message);
      else deps.log.warn({ err: error, stream }, "folding failed, it is tried again");
    };
    const options = { stream, from, epoch: deps.epoch, onError };
    const consumption = consumeStream(deps.broker, options, (batch, at) => fold(deps, batch, at));
    consumptions.push(consumption);
    void consumption.ended.then((why) => {
      if (why !== "stopped") deps.onLost(`the consumer of ${stream} is ${why}`);
    });
  };
  void deps.persist("consuming reports", () => consume(STREAMS.events, foldEvents));
  void deps.persist("consuming notices", () => consume(STREAMS.control, foldControl));
  const isBack = returns();
  watchHeartbeats(deps.broker, {
    every: HEARTBEATS_EVERY,
    signal: deps.signal,
    async onBatch(beats) {
      await foldHeartbeats(deps, beats);
      // A plan may be listening for it; a host that does not notice that the controller is another one reports nothing.
      if (beats.filter(isBack).length > 0) deps.onProgress();
    },
    onError: (error) => deps.log.warn({ err: error }, "heartbeats were not recorded"),
  });
  return { stop: async () => void (await Promise.all(consumptions.map((one) => one.stop()))) };
}

type Fold = (deps: FoldingDeps, batch: readonly Consumed[], at: Position) => Promise<void>;

async function foldEvents(deps: FoldingDeps, batch: readonly Consumed[], at: Position): Promise<void> {
  deps.fault("fold");
  const position = { stream: at.stream, created: at.created, seq: at.sequence };
  const messages = batch.map((message) => ({ seq: message.sequence, data: reported(message) }));
  const folded = await withEpoch(deps.inventory, deps.epoch, (tx) => foldReports(tx, messages, position));
  deps.fault("folded");
  if (folded.rejected > 0) deps.log.warn({ rejected: folded.rejected }, "reports were set aside");
  if (folded.raised.length > 0) deps.onRaised();
  if (folded.matters) deps.onProgress();
}

async function foldControl(deps: FoldingDeps, batch: readonly Consumed[], at: Position): Promise<void> {
  const position = { stream: at.stream, created: at.created, seq: at.sequence };
  await withEpoch(deps.inventory, deps.epoch, (tx) => savePosition(tx, position));
  deps.onNotices(new Set(batch.map(({ subject }) => subject.split(".")[2] ?? "")));
}

async function foldHeartbeats(
  deps: FoldingDeps,
  beats: ReadonlyArray<{ beat: { node: string; sequence: number } }>,
): Promise<void> {
  const { db } = deps.inventory;
  const heard = beats.map(({ beat }) => ({ node: beat.node, sequence: beat.sequence }));
  const higher = await recordHeartbeats(db, deps.epoch, heard);
  if (higher.length > 0 && (await raiseSequences(db, higher)).length > 0) deps.onRaised();
}

/** Tells a beat of a node that is heard for the first time, or after a silence. */
function returns(): (heard: Heard) => boolean {
  const last = new Map<string, number>();
  return ({ beat, heardAt }) => {
    const before = last.get(beat.node);
    last.set(beat.node, heardAt);
    return before === undefined || heardAt - before > SILENCE;
  };
}

/** What a message on EVENTS holds. One that speaks for another node than its subject allows is no report. */
function reported({ subject, data }: Consumed): unknown {
  const text = Buffer.from(data).toString("utf8");
  try {
    const value = JSON.parse(text) as { node?: unknown } | null;
    const node = typeof value?.node === "string" ? value.node : "";
    return nodeKey(node) === subject.split(".")[2]
      ? value
      : `${subject} speaks for ${node || "nobody"}: ${text}`;
  } catch {
    return text;
  }
}
