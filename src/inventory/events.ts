import type { Db, Tx } from "../io/postgres.ts";

/** Something that happened on a node, as `mesh events` shows it. */
export interface EventRow {
  id: number;
  at: string;
  node: string;
  kind: string;
  resource: string | null;
  detail: string;
}

export const EVENTS_KEPT = 10_000;

/**
 * Events after id `after`, oldest first; without it the newest `limit` ones. `next` is the id to go on after.
 */
export async function readEvents(
  db: Db,
  options: { after?: number | undefined; limit?: number | undefined; node?: string | undefined } = {},
): Promise<{ events: EventRow[]; next: number }> {
  const { after, node = null } = options;
  const limit = Math.min(options.limit ?? 100, 1_000);
  const rows = await db.query<EventRow & Record<string, unknown>>(
    `SELECT id, at, node, kind, resource, detail FROM mesh.events
     WHERE id > $1 AND ($3::text IS NULL OR node = $3) ORDER BY id ${after === undefined ? "DESC" : "ASC"} LIMIT $2`,
    [after ?? 0, limit, node],
  );
  const events = after === undefined ? rows.reverse() : rows;
  return { events, next: events.at(-1)?.id ?? after ?? 0 };
}

/** The newest 10,000, of the last 7 days. */
export async function pruneEvents(tx: Tx): Promise<void> {
  await tx.query(
    `DELETE FROM mesh.events WHERE kept_at < now() - interval '7 days'
       OR id <= (SELECT max(id) FROM mesh.events) - $1`,
    [EVENTS_KEPT],
  );
}
