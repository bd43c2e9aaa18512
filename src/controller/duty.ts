import type { CatalogueReader } from "../catalogue/open.ts";
import type { Composer } from "../composition/compose.ts";
import { nodeKey, STREAMS } from "../declaration/names.ts";
import { objectStore } from "../declaration/objects.ts";
import { createPublisher } from "../declaration/publish.ts";
import type { Signer } from "../declaration/sign.ts";
import { keepStreams, type StreamsState } from "../declaration/streams.ts";
import { recordHeartbeats } from "../inventory/heartbeats.ts";
import { keepHouse } from "../inventory/housekeeping.ts";
import type { Inventory } from "../inventory/index.ts";
import { NotActive, withEpoch } from "../inventory/plan-lock.ts";
import { readPosition, savePosition } from "../inventory/positions.ts";
import { foldReports } from "../inventory/reports.ts";
import { forgetPublished, raiseSequences } from "../inventory/sending.ts";
import type { Clock } from "../io/clock.ts";
import type { Fault } from "../io/faults.ts";
import type { Broker } from "../io/nats.ts";
import { applyCommand } from "../plan/apply-command.ts";
import { decide } from "../plan/decide.ts";
import { type Trigger, type WorkResult, workPlan } from "../plan/work.ts";
import { type Consumed, type Consumption, consumeStream } from "../report/consume.ts";
import { watchHeartbeats } from "../report/heartbeats.ts";
import { type Reconciled, reconcile } from "./reconcile.ts";
import { backoff, createRunner } from "./runner.ts";
import { createSender } from "./sender.ts";

const TIMER = 30_000;
const HOUSE_EVERY = 600_000;

export interface Log {
  info(facts: object, message: string): void;
  warn(facts: object, message: string): void;
  error(facts: object, message: string): void;
}

export interface DutyDeps {
  inventory: Inventory;
  broker: Broker;
  reader: CatalogueReader;
  composer: Composer;
  signer: Signer;
  clock: Clock;
  log: Log;
  ref: string;
  /** Between two safety reads of the ref, ms. */
  poll: number | undefined;
  seats: Readonly<Record<string, string>>;
  replicas: number;
  fault: Fault;
  /** The epoch turned out to be over, or the consumers were lost. */
  onLost(why: string): void;
}

/** What the active controller does while its epoch lasts. */
export interface Duty {
  /** Looks at the ref now; resolves when what was found is a plan, or refused. */
  look(): Promise<void>;
  /** Finishes what is in hand and starts nothing more. */
  stop(): Promise<void>;
}

/**
 * Watches the ref, makes plans, works them, publishes, and folds what hosts report; each part on its own, each tried again
 * for ever. All that changes anything carries the epoch, so that a controller that was paused changes nothing when it wakes.
 */
export function takeDuty(deps: DutyDeps, epoch: number): Duty {
  const { inventory, broker, clock, log, fault } = deps;
  const ending = new AbortController();
  const objects = objectStore(broker);
  const publisher = createPublisher(broker, { signer: deps.signer, objects });
  const sender = createSender({ inventory, publisher, objects, reader: deps.reader, fault });
  const consumptions: Consumption[] = [];
  const memory = { facts: null, kept: new Map<string, number>() };
  let wake: NodeJS.Timeout | undefined;

  /** Runs until it works, or the epoch is over. */
  const persist = async (what: string, run: () => Promise<void>): Promise<void> => {
    const tries = backoff(clock, 100, 5_000);
    while (!ending.signal.aborted) {
      try {
        return await run();
      } catch (error) {
        if (error instanceof NotActive) return deps.onLost(error.message);
        if (!ending.signal.aborted) log.warn({ err: error }, `${what} failed, it is tried again`);
        await tries.pause(ending.signal);
      }
    }
  };

  const sending = createRunner(() => persist("sending", () => sender.send()));
  const reconciling = createRunner(() =>
    persist("reading the catalogue", async () => {
      const found = await reconcile({ ...deps, epoch, sender, memory });
      tell(log, found);
      if (found.outcome === "merged") await work("merge");
      else void sending.ask();
    }),
  );

  const work = (trigger: Trigger): Promise<void> => persist("plan work", () => workOnce(trigger));
  const workOnce = async (trigger: Trigger): Promise<void> => {
    fault("work");
    const connectedAt = broker.status.connected ? broker.status.since : null;
    const facts = () => ({ connectedAt, builderThere: false });
    const result = await workPlan({ inventory, epoch, decide, applyCommand, clock, facts }, trigger);
    fault("worked");
    if (!result.worked) return;
    if (result.changed) tellPlan(log, result);
    wakeAt(result.wakeAt);
    if (result.released.length > 0) void sending.ask();
  };
  const working = createRunner(() => work("report"));

  const wakeAt = (at: number | null): void => {
    clearTimeout(wake);
    if (at === null || ending.signal.aborted) return;
    wake = setTimeout(() => void working.ask(), Math.max(20, Math.min(at - clock.now() + 5, TIMER)));
  };

  /** Streams made anew hold nothing of what was published: all of it is published again. */
  let created: string | null = null;
  const onStreams = async (state: StreamsState): Promise<void> => {
    const now = JSON.stringify(state.created);
    if (state.fresh.length > 0 || (created !== null && created !== now)) {
      sender.forget();
      await forgetPublished(inventory.db);
      log.warn({ streams: state.fresh }, "the broker's store is new: everything wanted is published again");
      void reconciling.ask();
    }
    created = now;
    void sending.ask();
    void working.ask();
  };

  const foldEvents = async (
    batch: readonly Consumed[],
    at: { stream: string; created: string; sequence: number },
  ) => {
    fault("fold");
    const position = { stream: at.stream, created: at.created, seq: at.sequence };
    const messages = batch.map((message) => ({ seq: message.sequence, data: reported(message) }));
    const folded = await withEpoch(inventory, epoch, (tx) => foldReports(tx, messages, position));
    fault("folded");
    if (folded.rejected > 0) log.warn({ rejected: folded.rejected }, "reports were set aside");
    if (folded.raised.length > 0) void sending.ask();
    if (folded.matters) void working.ask();
  };

  const foldControl = async (
    batch: readonly Consumed[],
    at: { stream: string; created: string; sequence: number },
  ) => {
    const position = { stream: at.stream, created: at.created, seq: at.sequence };
    await withEpoch(inventory, epoch, (tx) => savePosition(tx, position));
    const kinds = new Set(batch.map(({ subject }) => subject.split(".")[2]));
    if (kinds.has("merge")) void reconciling.ask();
    if (kinds.has("push") || kinds.has("freeze")) void sending.ask();
    void working.ask();
  };

  const consume = async (stream: string, fold: typeof foldEvents): Promise<void> => {
    const saved = await readPosition(inventory.db, stream);
    if (ending.signal.aborted) return;
    const from = saved && { created: saved.created, sequence: saved.seq };
    const onError = (error: unknown) => {
      if (error instanceof NotActive) deps.onLost(error.message);
      else log.warn({ err: error, stream }, "folding failed, it is tried again");
    };
    const consumption = consumeStream(broker, { stream, from, epoch, onError }, fold);
    consumptions.push(consumption);
    void consumption.ended.then((why) => {
      if (why !== "stopped") deps.onLost(`the consumer of ${stream} is ${why}`);
    });
  };

  const hear = (beats: ReadonlyArray<{ beat: { node: string; sequence: number } }>) =>
    recordHeartbeats(
      inventory.db,
      epoch,
      beats.map(({ beat }) => ({ node: beat.node, sequence: beat.sequence })),
    ).then(async (higher) => {
      if (higher.length > 0 && (await raiseSequences(inventory.db, higher)).length > 0) void sending.ask();
    });

  keepStreams(broker, {
    replicas: deps.replicas,
    signal: ending.signal,
    onState: onStreams,
    onError: (error) => log.warn({ err: error }, "the streams could not be looked at, tried again"),
  });
  void persist("consuming reports", () => consume(STREAMS.events, foldEvents));
  void persist("consuming notices", () => consume(STREAMS.control, foldControl));
  watchHeartbeats(broker, {
    every: 1_000,
    signal: ending.signal,
    onBatch: hear,
    onError: (error) => log.warn({ err: error }, "heartbeats were not recorded"),
  });
  void persist("watching the catalogue", () =>
    deps.reader.watch({
      signal: ending.signal,
      onHint: () => reconciling.ask(),
      onError: (error) => log.warn({ err: error }, "the catalogue's remote could not be read, tried again"),
      ...(deps.poll === undefined ? {} : { poll: deps.poll }),
    }),
  );
  void reconciling.ask();
  void working.ask();
  const timer = setInterval(() => void work("timer").then(() => sending.ask()), TIMER);
  const house = setInterval(() => void keepHouse(inventory, epoch).catch(() => undefined), HOUSE_EVERY);

  return {
    look: () => reconciling.ask(),
    async stop() {
      ending.abort(new Error("not active any more"));
      clearInterval(timer);
      clearInterval(house);
      clearTimeout(wake);
      await Promise.all([
        reconciling.stop(),
        working.stop(),
        sending.stop(),
        ...consumptions.map((consumption) => consumption.stop()),
      ]);
    },
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

function tell(log: Log, found: Reconciled): void {
  if (found.outcome === "merged")
    log.info(
      { plan: found.plan.id, commit: found.commit, superseded: found.superseded },
      "a merge became a plan",
    );
  if (found.outcome === "refused")
    log.warn(
      { commit: found.commit, problems: found.problems.length, first: found.problems[0] },
      "the catalogue is refused",
    );
}

function tellPlan(log: Log, { plan, released }: Extract<WorkResult, { worked: true }>): void {
  const tiers = plan.tiers.map(({ state }) => state);
  log.info(
    { plan: plan.id, state: plan.state, reason: plan.reason, tiers, released: released.length },
    "plan worked",
  );
}
