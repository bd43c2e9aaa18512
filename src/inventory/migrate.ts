import { meshError } from "../errors.ts";
import type { Store, Tx } from "../io/postgres.ts";
import { MIGRATIONS } from "./migrations.ts";

export class SchemaTooNew extends meshError(
  "schema-too-new",
  "stalled",
  (f: { store: string; least: number; ours: number }) =>
    `the store at ${f.store} needs a release that knows schema ${f.least}, this one knows ${f.ours}; install the newer release`,
) {}

/** Any number that nobody else uses: "mesh migrate". */
const MIGRATE_LOCK = 0x6d657368_01n;
const LIMITS = { statementMs: 60_000, idleMs: 10_000, lockMs: 60_000 };

/**
 * Brings the schema `mesh` up to this release, and does nothing when it is. Two that start at once on an empty database
 * take turns: everything happens in one transaction that first takes an advisory lock.
 */
export async function migrate(store: Store): Promise<void> {
  await store.transaction(LIMITS, async (tx) => {
    await tx.query("SELECT pg_advisory_xact_lock($1)", [MIGRATE_LOCK.toString()]);
    await tx.query("CREATE SCHEMA IF NOT EXISTS mesh");
    await tx.query(`CREATE TABLE IF NOT EXISTS mesh.migrations (
      id int PRIMARY KEY, name text NOT NULL, least int NOT NULL DEFAULT 0, at timestamptz NOT NULL DEFAULT now())`);
    const done = await applied(tx);
    checkKnown(store.at, done);
    for (const migration of MIGRATIONS.filter(({ id }) => !done.has(id))) {
      await tx.query(migration.sql);
      await tx.query("INSERT INTO mesh.migrations (id, name) VALUES ($1, $2)", [
        migration.id,
        migration.name,
      ]);
    }
  });
}

/** `least`, written by a contracting migration of a later release, is the newest migration that a release must know. */
function checkKnown(store: string, done: ReadonlyMap<number, number>): void {
  const ours = MIGRATIONS.at(-1)!.id;
  const least = Math.max(0, ...done.values());
  if (least > ours) throw new SchemaTooNew({ store, least, ours });
}

async function applied(tx: Tx): Promise<Map<number, number>> {
  const rows = await tx.query<{ id: number; least: number }>("SELECT id, least FROM mesh.migrations");
  return new Map(rows.map(({ id, least }) => [id, least]));
}
