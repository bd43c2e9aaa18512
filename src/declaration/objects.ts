import { createHash, type Hash, randomBytes } from "node:crypto";
import { open, rename, unlink } from "node:fs/promises";
import { headers } from "nats";
import { meshError } from "../errors.ts";
import { type Broker, brokerFailure, readStored, whileConnected } from "../io/nats.ts";
import { BUCKETS, OBJECTS_STREAM } from "./names.ts";

export class ObjectMissing extends meshError(
  "object-missing",
  "retry",
  (f: { sha256: string }) =>
    `object ${f.sha256}: is not in the broker's store; the controller puts it there again, or run \`mesh push\``,
) {}

export class ObjectCorrupt extends meshError(
  "object-corrupt",
  "retry",
  (f: { sha256: string; found: string }) =>
    `object ${f.sha256}: came with the digest ${f.found}; nothing of it was used, it is read again`,
) {}

/** What is large, by its own sha256 (hex). Put once; a concurrent put of the same bytes is harmless. */
export interface ObjectStore {
  has(sha256: string): Promise<boolean>;
  /** `stored` is false when it was there already. */
  put(bytes: Uint8Array): Promise<{ sha256: string; stored: boolean }>;
  /** The bytes, their digest checked. Throws ObjectMissing, ObjectCorrupt. */
  get(sha256: string): Promise<Buffer>;
  /** Writes it beside `file`, checks the digest, then renames: `file` is whole or not there. Mode 0600 by default. */
  getToFile(sha256: string, file: string, mode?: number): Promise<void>;
}

/** What the meta message of an object holds (the layout of the NATS object store, so that `nats object` reads it too). */
interface Meta {
  name: string;
  nuid: string;
  size: number;
  chunks: number;
  deleted?: boolean;
}

const CHUNK = 512 * 1024;
const IN_FLIGHT = 8;

/**
 * The object store on a broker. The library's own put and get digest in JavaScript and hold the event loop for 240 ms per
 * 8 MiB (native: 7 ms), and make a consumer for each get; the layout on the wire is the same.
 */
export function objectStore(broker: Broker): ObjectStore {
  const underWay = new Map<string, Promise<boolean>>();

  async function put(bytes: Uint8Array) {
    const sha256 = createHash("sha256").update(bytes).digest("hex");
    let storing = underWay.get(sha256);
    if (!storing) {
      storing = store(broker, sha256, bytes).finally(() => underWay.delete(sha256));
      underWay.set(sha256, storing);
    }
    return { sha256, stored: await storing };
  }

  async function read(sha256: string, take: (chunk: Uint8Array) => void | Promise<void>): Promise<void> {
    const found = await metaOf(broker, sha256);
    if (!found || found.meta.deleted) throw new ObjectMissing({ sha256 });
    const digest = createHash("sha256");
    await readChunks(broker, sha256, found.meta, digest, take);
    const is = digest.digest("hex");
    if (is !== sha256) throw new ObjectCorrupt({ sha256, found: is });
  }

  return {
    async has(sha256) {
      const found = await metaOf(broker, sha256);
      return found !== null && !found.meta.deleted;
    },
    put,
    async get(sha256) {
      const chunks: Uint8Array[] = [];
      await read(sha256, (chunk) => void chunks.push(chunk));
      return Buffer.concat(chunks);
    },
    async getToFile(sha256, file, mode = 0o600) {
      const beside = `${file}.${randomBytes(6).toString("hex")}.part`;
      const handle = await open(beside, "wx", mode);
      try {
        await read(sha256, async (chunk) => void (await handle.writeFile(chunk)));
        await handle.sync();
        await handle.close();
        await rename(beside, file);
      } catch (error) {
        await handle.close().catch(() => {});
        await unlink(beside).catch(() => {});
        throw error;
      }
    },
  };
}

function metaSubject(sha256: string): string {
  const name = Buffer.from(sha256).toString("base64").replaceAll("+", "-").replaceAll("/", "_");
  return `$O.${BUCKETS.objects}.M.${name}`;
}
const chunkSubject = (nuid: string) => `$O.${BUCKETS.objects}.C.${nuid}`;

async function metaOf(broker: Broker, sha256: string): Promise<{ meta: Meta; seq: number } | null> {
  const message = await readStored(broker, OBJECTS_STREAM, metaSubject(sha256));
  return message && { meta: JSON.parse(Buffer.from(message.data).toString()) as Meta, seq: message.seq };
}

/** Returns whether this call stored it: chunks first, then the meta message by compare-and-set, which one writer wins. */
async function store(broker: Broker, sha256: string, bytes: Uint8Array): Promise<boolean> {
  const found = await metaOf(broker, sha256);
  if (found && !found.meta.deleted && found.meta.size === bytes.length) return false;
  const nuid = randomBytes(11).toString("hex");
  try {
    const chunks = await sendChunks(broker, nuid, bytes);
    await sendMeta(broker, sha256, { nuid, chunks, size: bytes.length }, found?.seq ?? 0);
    return true;
  } catch (error) {
    await discardChunks(broker, nuid);
    if (brokerFailure(error) === "wrong-last-sequence") return false;
    throw error;
  }
}

async function sendChunks(broker: Broker, nuid: string, bytes: Uint8Array): Promise<number> {
  const size = Math.min(CHUNK, Math.floor((broker.maxPayload * 3) / 4));
  const inFlight = new Set<Promise<unknown>>();
  let chunks = 0;
  for (let at = 0; at < bytes.length; at += size) {
    if (inFlight.size >= IN_FLIGHT) await Promise.race(inFlight);
    const sent = broker.js.publish(chunkSubject(nuid), bytes.subarray(at, at + size));
    const one: Promise<unknown> = whileConnected(broker, sent).then(() => inFlight.delete(one));
    inFlight.add(one);
    chunks++;
  }
  await Promise.all(inFlight);
  return chunks;
}

async function sendMeta(
  broker: Broker,
  sha256: string,
  stored: { nuid: string; chunks: number; size: number },
  after: number,
): Promise<void> {
  const meta = {
    name: sha256,
    bucket: BUCKETS.objects,
    ...stored,
    mtime: new Date().toISOString(),
    digest: `SHA-256=${Buffer.from(sha256, "hex").toString("base64").replaceAll("+", "-").replaceAll("/", "_")}`,
    deleted: false,
    options: { max_chunk_size: CHUNK },
  };
  const rollup = headers();
  rollup.set("Nats-Rollup", "sub");
  await whileConnected(
    broker,
    broker.js.publish(metaSubject(sha256), JSON.stringify(meta), {
      headers: rollup,
      expect: { lastSubjectSequence: after },
    }),
  );
}

async function discardChunks(broker: Broker, nuid: string): Promise<void> {
  if (!broker.status.connected) return;
  const manager = await broker.manager();
  await manager.streams.purge(OBJECTS_STREAM, { filter: chunkSubject(nuid) }).catch(() => {});
}

async function readChunks(
  broker: Broker,
  sha256: string,
  meta: Meta,
  digest: Hash,
  take: (chunk: Uint8Array) => void | Promise<void>,
): Promise<void> {
  let from = 1;
  for (let chunk = 0; chunk < meta.chunks; chunk++) {
    const message = await readStored(broker, OBJECTS_STREAM, chunkSubject(meta.nuid), from);
    if (!message) throw new ObjectMissing({ sha256 });
    digest.update(message.data);
    await take(message.data);
    from = message.seq + 1;
  }
}
