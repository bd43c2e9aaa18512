import { setTimeout as delay } from "node:timers/promises";
import { meshError, messageOf } from "../errors.ts";
import { type Broker, brokerFailure, readStored, whileConnected, withoutCredentials } from "../io/nats.ts";
import { BUCKETS, DECLARATIONS_STREAM, nodeKey, sequenceIn, subjects } from "./names.ts";
import type { ObjectStore } from "./objects.ts";
import type { Signer } from "./sign.ts";

export class PublishFailed extends meshError(
  "publish-failed",
  "retry",
  (f: { node: string; why: string }) =>
    `declaration of ${f.node}: not published (${f.why}); it is tried again`,
) {}

/** What a node is to be sent. `body` is the JSON text that `revision` digests. */
export interface Outgoing {
  node: string;
  sequence: number;
  revision: string;
  commit: string;
  tier: 0 | 1 | 2;
  body: string;
}

/**
 * published: it stands there now. standing: it stood there already. higher: another one of this or a higher sequence (`found`)
 * stands there and was left; the store raises its own above `found` and publishes again. failed: unknown, try again.
 */
export type Published =
  | { node: string; sequence: number; result: "published" | "standing" }
  | { node: string; sequence: number; result: "higher"; found: number }
  | { node: string; sequence: number; result: "failed"; error: PublishFailed };

export interface Publisher {
  /** Publishes all of them, in any order; never throws for one. Results are in the order given. */
  publish(batch: readonly Outgoing[]): Promise<Published[]>;
}

/** Above it, or above three quarters of what the server takes, a declaration goes through `objects`. */
const INLINE_MOST = 512 * 1024;
const TRIES = 10;
/** From so many keys on whose state is unknown, one question about all of them is cheaper than one each. */
const MANY = 32;

/**
 * Puts declarations under their nodes' keys by compare-and-set. Several publishers may be at work at once.
 * @param options.concurrency requests under way at once
 */
export function createPublisher(
  broker: Broker,
  deps: { signer: Signer; objects: ObjectStore },
  options: { concurrency?: number } = {},
): Publisher {
  // What stands under each key as last seen: its sequence, and that of its message. Where it is out of date the server refuses.
  const seen = new Map<string, { sequence: number; seq: number }>();
  // The keys that something stood under when there was much to publish first; of no others a read is needed.
  let present: ReadonlySet<string> | null = null;
  broker.onDisconnect(() => {
    seen.clear();
    present = null;
  });

  async function one(wanted: Outgoing): Promise<Published> {
    const { node, sequence } = wanted;
    try {
      const entry = await entryOf(wanted);
      if (!seen.has(node) && present && !present.has(nodeKey(node))) seen.set(node, { sequence: 0, seq: 0 });
      for (let attempt = 0; attempt < TRIES; attempt++) {
        let last = seen.get(node);
        if (!last || last.sequence >= sequence) {
          const standing = await readEntry(broker, node);
          if (standing.bytes.equals(entry)) return { node, sequence, result: "standing" };
          if (outranks(standing, wanted))
            return { node, sequence, result: "higher", found: standing.sequence };
          last = standing;
        }
        const seq = await put(broker, node, entry, last.seq);
        if (seq !== null) {
          seen.set(node, { sequence, seq });
          return { node, sequence, result: "published" };
        }
        seen.delete(node);
        await delay(Math.random() * 5 * attempt);
      }
      throw new Error("others were faster each time");
    } catch (error) {
      seen.delete(node);
      return failed(wanted, error);
    }
  }

  async function entryOf(wanted: Outgoing): Promise<Buffer> {
    const text = declarationText(wanted, deps.signer);
    const entry = Buffer.from(`{"sequence":${wanted.sequence},"declaration":${text}}`);
    if (entry.length <= Math.min(INLINE_MOST, (broker.maxPayload * 3) / 4)) return entry;
    const bytes = Buffer.from(text);
    const { sha256 } = await deps.objects.put(bytes);
    return Buffer.from(JSON.stringify({ sequence: wanted.sequence, object: sha256, size: bytes.length }));
  }

  return {
    async publish(batch) {
      const results = new Array<Published>(batch.length);
      const unknown = batch.filter((wanted) => !seen.has(wanted.node)).length;
      try {
        if (unknown >= MANY) present ??= await publishedKeys(broker);
      } catch (error) {
        if (brokerFailure(error) === "no-stream") return batch.map((wanted) => failed(wanted, error));
      }
      let next = 0;
      const worker = async () => {
        while (next < batch.length) {
          const at = next++;
          results[at] = await one(batch[at]!);
        }
      };
      await Promise.all(Array.from({ length: Math.min(options.concurrency ?? 128, batch.length) }, worker));
      return results;
    },
  };
}

function failed({ node, sequence }: Outgoing, cause: unknown): Published {
  const noStream = brokerFailure(cause) === "no-stream";
  const why = noStream ? "the broker has no bucket for it yet" : withoutCredentials(messageOf(cause));
  return { node, sequence, result: "failed", error: new PublishFailed({ node, why }, { cause }) };
}

/** The declaration as JSON; the body's text is taken over as it is, since parsing and writing it again costs most of a publish. */
function declarationText(wanted: Outgoing, signer: Signer): string {
  const { node, revision, sequence, commit, tier, body } = wanted;
  const signature = signer.sign({ body: { node }, revision, sequence, commit });
  const outside = JSON.stringify({ revision, sequence, commit, tier, signature });
  return `${outside.slice(0, -1)},"body":${body}}`;
}

/** Null when another write came first. */
async function put(broker: Broker, node: string, entry: Buffer, last: number): Promise<number | null> {
  try {
    const sent = broker.js.publish(subjects.declaration(node), entry, {
      expect: { lastSubjectSequence: last },
    });
    return (await whileConnected(broker, sent)).seq;
  } catch (error) {
    if (brokerFailure(error) === "wrong-last-sequence") return null;
    throw error;
  }
}

interface Standing {
  bytes: Buffer;
  sequence: number;
  seq: number;
}

/** What stands under a node's key. A deleted or unreadable entry has sequence 0: it is replaced. */
async function readEntry(broker: Broker, node: string): Promise<Standing> {
  const message = await readStored(broker, DECLARATIONS_STREAM, subjects.declaration(node));
  const bytes = Buffer.from(message?.data ?? []);
  return { bytes, sequence: sequenceIn(bytes) ?? entryIn(bytes)?.sequence ?? 0, seq: message?.seq ?? 0 };
}

function outranks(standing: Standing, wanted: Outgoing): boolean {
  if (standing.sequence !== wanted.sequence) return standing.sequence > wanted.sequence;
  return entryIn(standing.bytes)?.revision !== wanted.revision;
}

function entryIn(bytes: Buffer): { sequence: number; revision: string | null } | null {
  try {
    const { sequence, declaration } = JSON.parse(bytes.toString("utf8"));
    if (!Number.isSafeInteger(sequence)) return null;
    return { sequence, revision: declaration?.revision ?? null };
  } catch {
    return null;
  }
}

/** Every key that a declaration stands under: what is missing of the wanted ones is published again. */
export async function publishedKeys(broker: Broker): Promise<ReadonlySet<string>> {
  const manager = await broker.manager();
  const prefix = `$KV.${BUCKETS.declarations}.`;
  const info = await whileConnected(
    broker,
    manager.streams.info(DECLARATIONS_STREAM, { subjects_filter: `${prefix}>` }),
  );
  return new Set(Object.keys(info.state.subjects ?? {}).map((subject) => subject.slice(prefix.length)));
}
