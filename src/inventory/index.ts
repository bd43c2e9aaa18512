import { openStore, type Store } from "../io/postgres.ts";
import { migrate } from "./migrate.ts";

/**
 * What the controller knows, in Postgres. The functions of this folder take `inventory.db`, or a `Tx` inside a transaction:
 * one statement each, for one node or ten thousand.
 */
export interface Inventory {
  readonly db: Store;
  /** A connection of its own for the epoch's renewal, so that nothing that waits for a connection delays it. */
  readonly lease: Store;
  close(): Promise<void>;
}

export interface InventoryOptions {
  /** Shown in pg_stat_activity, as "mesh-controller <name>". */
  name?: string;
  /** False: the schema is taken as it is (commands that only read). */
  migrate?: boolean;
}

/** Connects, and brings the schema up to this release. Throws StoreUnreachable when Postgres does not answer within 5 s. */
export async function openInventory(url: string, options: InventoryOptions = {}): Promise<Inventory> {
  const applicationName = `mesh-controller ${options.name ?? ""}`.trim();
  const db = openStore(url, { applicationName });
  const lease = openStore(url, {
    applicationName: `${applicationName} lease`,
    max: 1,
    connectMs: LEASE_MS,
    queryMs: LEASE_MS,
  });
  const close = async () => void (await Promise.all([db.close(), lease.close()]));
  try {
    if (options.migrate ?? true) await migrate(db);
  } catch (error) {
    await close();
    throw error;
  }
  return { db, lease, close };
}

const LEASE_MS = 2_000;
