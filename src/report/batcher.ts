import { setTimeout as delay } from "node:timers/promises";
import type { Msg } from "nats";

/** A message of a stream, in the stream's order. */
export interface Consumed {
  subject: string;
  data: Uint8Array;
  /** Its sequence in the stream. */
  sequence: number;
}

/** One delivery by a consumer, as its reply subject tells. */
export interface Delivery {
  consumed: Consumed;
  /** Counts every delivery by this consumer, repeated ones too. */
  delivered: number;
  /** Messages that the stream still has for it. */
  pending: number;
  ack(): void;
}

/** Null for what is no delivery. The subject is `$JS.ACK.[domain.account.]stream.consumer.count.stream-seq.consumer-seq.time.pending[.x]`. */
export function deliveryOf(message: Msg): Delivery | null {
  if (!message.reply?.startsWith("$JS.ACK.")) return null;
  const tokens = message.reply.split(".");
  const at = tokens.length > 9 ? 4 : 2;
  const number = (offset: number) => Number(tokens[at + offset]);
  return {
    consumed: { subject: message.subject, data: message.data, sequence: number(3) },
    delivered: number(4),
    pending: number(6),
    ack: () => void message.respond("+ACK"),
  };
}

const MOST = 256;
const WITHIN = 20;
const RETRY_WAITS = [50, 100, 250, 500, 1_000, 2_000, 5_000];
const HALVED_AFTER = 3;

/** Gathers messages and gives them on one batch at a time; acknowledges what was taken. */
export class Batcher {
  readonly #onBatch: (batch: readonly Consumed[]) => Promise<void>;
  readonly #onError: ((error: unknown) => void) | undefined;
  readonly #closed = new AbortController();
  #waiting: Delivery[] = [];
  #highest: number;
  #working: Promise<void> | null = null;
  #timer: NodeJS.Timeout | undefined;

  constructor(
    after: number,
    onError: ((error: unknown) => void) | undefined,
    onBatch: (batch: readonly Consumed[]) => Promise<void>,
  ) {
    this.#highest = after;
    this.#onError = onError;
    this.#onBatch = onBatch;
  }

  /** Takes a delivery; one that came before is not given again. */
  take(delivery: Delivery): void {
    if (delivery.consumed.sequence <= this.#highest) return;
    this.#highest = delivery.consumed.sequence;
    this.#waiting.push(delivery);
    this.#plan(delivery.pending === 0);
  }

  /** Finishes the call under way, gives no further one. */
  async close(): Promise<void> {
    this.#closed.abort();
    clearTimeout(this.#timer);
    await this.#working;
  }

  /** Waits for more only while the stream has more. */
  #plan(last: boolean): void {
    if (this.#working || this.#closed.signal.aborted) return;
    if (last || this.#waiting.length >= MOST) this.#begin();
    else this.#timer ??= setTimeout(() => this.#begin(), WITHIN);
  }

  #begin(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (this.#working || this.#closed.signal.aborted || this.#waiting.length === 0) return;
    this.#working = this.#work().finally(() => {
      this.#working = null;
      this.#begin();
    });
  }

  async #work(): Promise<void> {
    let most = MOST;
    for (let failures = 0; !this.#closed.signal.aborted; ) {
      const batch = this.#waiting.slice(0, most);
      try {
        await this.#onBatch(batch.map((one) => one.consumed));
        this.#waiting.splice(0, batch.length);
        batch.at(-1)?.ack();
        return;
      } catch (error) {
        this.#onError?.(error);
        const wait = RETRY_WAITS[Math.min(failures++, RETRY_WAITS.length - 1)]!;
        if (failures >= HALVED_AFTER) most = Math.max(1, Math.min(most, batch.length) >> 1);
        await delay(wait, undefined, { signal: this.#closed.signal }).catch(() => {});
      }
    }
  }
}
