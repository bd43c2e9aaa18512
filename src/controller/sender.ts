import { breather } from "../catalogue/breather.ts";
import type { CatalogueReader } from "../catalogue/open.ts";
import type { ComposedNode } from "../composition/compose.ts";
import type { ObjectStore } from "../declaration/objects.ts";
import type { Published, Publisher } from "../declaration/publish.ts";
import { meshError } from "../errors.ts";
import type { Inventory } from "../inventory/index.ts";
import { markPublished, raiseSequences, readUnpublished } from "../inventory/sending.ts";
import type { Fault } from "../io/faults.ts";

const BATCH = 500;

export class SendingFailed extends meshError(
  "sending-failed",
  "retry",
  (f: { nodes: number; first: string }) =>
    `${f.nodes} declarations could not be published (${f.first}); tried again`,
) {}

interface Offered {
  oid: string | null;
  bytes: Buffer | null;
}

/**
 * Publishes what the inventory wants and the broker does not have. A crash at any point sends again without a second
 * effect: what was published is marked after, and the key takes no lower sequence.
 */
export interface Sender {
  /**
   * Bodies that declarations point to; put into the object store before anything is published. `changed` is asked at every
   * merge, `all` only while it is not known what the store holds (at the start, after it was wiped).
   */
  offer(nodes: { changed: readonly ComposedNode[]; all(): Iterable<ComposedNode> }): Promise<void>;
  /** The broker's store was wiped: nothing that was put there is there. */
  forget(): void;
  /** Until nothing is unpublished. Throws SendingFailed, StoreUnreachable or a failure of the broker: run it again. */
  send(): Promise<void>;
}

export function createSender(deps: {
  inventory: Inventory;
  publisher: Publisher;
  objects: ObjectStore;
  reader: Pick<CatalogueReader, "readBody">;
  fault: Fault;
}): Sender {
  const { inventory, publisher, objects, reader, fault } = deps;
  const offered = new Map<string, Offered>();
  const put = new Set<string>();
  let allOffered = false;

  async function putObjects(): Promise<void> {
    for (const [sha256, body] of offered) {
      if (!put.has(sha256) && !(await objects.has(sha256))) {
        const bytes = body.bytes ?? (await reader.readBody(body.oid as string));
        await objects.put(bytes);
      }
      put.add(sha256);
      offered.delete(sha256);
    }
  }

  async function settle(results: readonly Published[]): Promise<void> {
    fault("published");
    await markPublished(
      inventory.db,
      results.filter(({ result }) => result === "published" || result === "standing"),
    );
    const higher = results.flatMap((one) =>
      one.result === "higher" ? [{ node: one.node, sequence: one.found }] : [],
    );
    await raiseSequences(inventory.db, higher);
    const failed = results.flatMap((one) => (one.result === "failed" ? [one.error] : []));
    if (failed[0])
      throw new SendingFailed({ nodes: failed.length, first: failed[0].message }, { cause: failed[0] });
  }

  return {
    async offer({ changed, all }) {
      const breathe = breather();
      for (const node of allOffered ? changed : all()) {
        await breathe();
        for (const [sha256, { oid, bytes }] of node.objects)
          if (!put.has(sha256)) offered.set(sha256, { oid, bytes });
      }
      allOffered = true;
    },
    forget() {
      put.clear();
      allOffered = false;
    },
    async send() {
      for (;;) {
        const batch = await readUnpublished(inventory.db, BATCH);
        if (batch.length === 0) return;
        await putObjects();
        fault("publish");
        await settle(await publisher.publish(batch));
      }
    },
  };
}
