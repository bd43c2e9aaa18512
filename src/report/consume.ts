import { randomBytes } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import type { Msg } from "nats";
import { type Broker, brokerFailure, whileConnected } from "../io/nats.ts";
import { Batcher, type Consumed, deliveryOf } from "./batcher.ts";
import {
  type Claim,
  claimConsumer,
  consumerOf,
  deliverSubject,
  IDLE_HEARTBEAT,
  releaseConsumer,
} from "./consume-claim.ts";

export type { Consumed } from "./batcher.ts";

/** How far a stream was folded: all up to `sequence`, of the stream that the server made at `created`. Saved by the fold's transaction. */
export interface Position {
  stream: string;
  created: string;
  sequence: number;
}

export interface ConsumeOptions {
  stream: string;
  /** As saved, null at the first time ever. Another creation time means a wiped store: it starts at the first message. */
  from: { created: string; sequence: number } | null;
  /** The controller's own; a consumer of a lower epoch is taken over, to one of a higher this one gives way. */
  epoch: number;
  /** A batch failed (it is given again), or the broker refused something (it is tried again). */
  onError?(error: unknown): void;
}

/**
 * Why consuming ended. taken-over: a later epoch has the consumer. silent: two idle heartbeats were missed and the broker
 * does not say that the consumer is still this one's; whoever is active gives its epoch up, and begins anew when it has one.
 */
export type Ended = "taken-over" | "silent" | "stopped";

export interface Consumption {
  /** Resolves when it ended, after the last batch was finished. Never rejects. */
  readonly ended: Promise<Ended>;
  readonly position: Position | null;
  /** Messages that wait in the stream, as of the last one received; 0 when all were seen. */
  readonly pending: number;
  /** True while the consumer is held and heard. */
  readonly live: boolean;
  /** Finishes the batch in hand, frees the consumer, and ends. */
  stop(): Promise<void>;
}

/** Two idle heartbeats missed, with room for a late one. */
const SILENT_AFTER = 2.5 * IDLE_HEARTBEAT;
const RETRY_WAITS = [50, 100, 250, 500, 1_000];

/**
 * Consumes a stream in its order, without gaps, in batches of up to 256 messages or 20 ms. The batch is given with the
 * position that folding it leads to, and acknowledged after `onBatch` resolved; after a throw the same batch comes again,
 * later and later, and the third time in halves, so that one message alone is what it stops at.
 */
export function consumeStream(
  broker: Broker,
  options: ConsumeOptions,
  onBatch: (batch: readonly Consumed[], position: Position) => Promise<void>,
): Consumption {
  const { stream, epoch } = options;
  const stopping = new AbortController();
  let position: Position | null = options.from && { stream, ...options.from };
  let session: Session | null = null;

  async function run(): Promise<Ended> {
    let failures = 0;
    let awaySince = performance.now();
    while (!stopping.signal.aborted) {
      let outcome: Outcome = "again";
      try {
        if (!broker.status.connected) {
          const left = awaySince + SILENT_AFTER - performance.now();
          if (left <= 0) return "silent";
          await broker.connected({ within: left, signal: stopping.signal });
        }
        position = await locate(broker, stream, position);
        const from = position;
        session = new Session(
          broker,
          { stream, epoch, from, onError: options.onError },
          async (batch, to) => {
            await onBatch(batch, to);
            position = to;
          },
        );
        outcome = await session.run(stopping.signal);
        failures = 0;
      } catch (error) {
        if (stopping.signal.aborted) break;
        // Not there yet, or wiped: it is made again at the next look.
        if (broker.status.connected && brokerFailure(error) !== "no-stream") options.onError?.(error);
        const wait = RETRY_WAITS[Math.min(failures++, RETRY_WAITS.length - 1)]!;
        await delay(wait, undefined, { signal: stopping.signal }).catch(() => {});
      }
      if (outcome === "taken-over" || outcome === "silent") return outcome;
      if (session && broker.status.connected)
        await delay(RETRY_WAITS[0], undefined, { signal: stopping.signal }).catch(() => {});
      if (broker.status.connected || session) awaySince = performance.now();
      session = null;
    }
    return "stopped";
  }

  const ended = run();
  return {
    ended,
    get position() {
      return position;
    },
    get pending() {
      return session?.pending ?? 0;
    },
    get live() {
      return session?.live ?? false;
    },
    async stop() {
      stopping.abort();
      await ended;
    },
  };
}

/** Where to go on: at the saved place, or from the start of a stream that is not the one it was saved of. */
async function locate(broker: Broker, stream: string, saved: Position | null): Promise<Position> {
  const manager = await broker.manager();
  const info = await whileConnected(broker, manager.streams.info(stream));
  const same = saved?.created === info.created && saved.sequence <= info.state.last_seq;
  return same ? saved : { stream, created: info.created, sequence: 0 };
}

type Outcome = "again" | "taken-over" | "silent" | "stopped";

/** One consumer with one deliver subject, until something about it is not as it was. */
class Session {
  readonly #broker: Broker;
  readonly #claim: Claim;
  readonly #batcher: Batcher;
  #heardAt = performance.now();
  #delivered = 0;
  #end: (outcome: Outcome) => void = () => {};
  pending = 0;
  live = false;

  constructor(
    broker: Broker,
    options: {
      stream: string;
      epoch: number;
      from: Position;
      onError: ((error: unknown) => void) | undefined;
    },
    onBatch: (batch: readonly Consumed[], position: Position) => Promise<void>,
  ) {
    const { stream, epoch, from } = options;
    this.#broker = broker;
    const subject = deliverSubject(stream, epoch, randomBytes(8).toString("hex"));
    this.#claim = { stream, epoch, subject, after: from.sequence };
    this.#batcher = new Batcher(from.sequence, options.onError, (batch) =>
      onBatch(batch, { ...from, sequence: batch.at(-1)!.sequence }),
    );
  }

  async run(stopping: AbortSignal): Promise<Outcome> {
    const ended = new Promise<Outcome>((resolve) => (this.#end = resolve));
    const subscription = this.#broker.connection.subscribe(this.#claim.subject, {
      callback: (error, message) => (error ? this.#end("again") : this.#take(message)),
    });
    const off = this.#broker.onDisconnect(() => this.#end("again"));
    const stop = () => this.#end("stopped");
    stopping.addEventListener("abort", stop, { once: true });
    let timer: NodeJS.Timeout | undefined;
    try {
      if (stopping.aborted) return "stopped";
      const claimed = await whileConnected(this.#broker, claimConsumer(this.#broker, this.#claim));
      if (claimed === "taken-over") return claimed;
      this.live = true;
      this.#heardAt = performance.now();
      timer = setInterval(() => void this.#listen(), IDLE_HEARTBEAT / 4);
      return await ended;
    } finally {
      clearInterval(timer);
      off();
      stopping.removeEventListener("abort", stop);
      this.live = false;
      await this.#batcher.close();
      if (this.#broker.status.connected) {
        subscription.unsubscribe();
        if (stopping.aborted)
          await whileConnected(this.#broker, releaseConsumer(this.#broker, this.#claim)).catch(() => {});
      } else subscription.unsubscribe();
    }
  }

  #take(message: Msg): void {
    this.#heardAt = performance.now();
    const { headers } = message;
    if (headers && headers.code === 100) {
      if (Number(headers.get("Nats-Last-Consumer")) > this.#delivered) this.#end("again");
      return;
    }
    const delivery = deliveryOf(message);
    if (!delivery) return;
    // What was sent on a connection that broke comes again only after the ack wait, behind newer ones: the order is lost.
    if (delivery.delivered !== this.#delivered + 1) {
      this.#end("again");
      return;
    }
    this.#delivered = delivery.delivered;
    this.pending = delivery.pending;
    this.#batcher.take(delivery);
  }

  #asking = false;
  async #listen(): Promise<void> {
    if (this.#asking || performance.now() - this.#heardAt < SILENT_AFTER) return;
    this.#asking = true;
    const ask = whileConnected(this.#broker, consumerOf(this.#broker, this.#claim.stream));
    const limit = delay(2 * IDLE_HEARTBEAT, "no answer" as const);
    const standing = await Promise.race([ask, limit]).catch((error: unknown) =>
      brokerFailure(error) === "no-stream" ? null : ("no answer" as const),
    );
    // Ours, or gone with its store: claimed again, which gives way to a later epoch.
    this.#end(standing === "no answer" ? "silent" : "again");
  }
}
