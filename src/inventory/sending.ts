import type { Db, Tx } from "../io/postgres.ts";

/** A declaration that is wanted and not known to be published. `body` is the canonical JSON text. */
export interface Unpublished {
  node: string;
  sequence: number;
  revision: string;
  commit: string;
  tier: 0 | 1 | 2;
  body: string;
}

export interface NodeSequence {
  node: string;
  sequence: number;
}

/** At most `limit`, those wanted longest first. Nothing of frozen or released nodes, nothing while the mesh is frozen. */
export async function readUnpublished(db: Db, limit: number): Promise<Unpublished[]> {
  return db.query<Unpublished & Record<string, unknown>>(
    `SELECT n.name AS node, n.wanted_seq AS sequence, n.wanted_revision AS revision, n.wanted_commit AS commit,
            n.wanted_tier AS tier, b.body
     FROM mesh.nodes n JOIN mesh.bodies b ON b.revision = n.wanted_revision
     WHERE n.wanted_seq > n.published_seq AND n.declared
       AND NOT EXISTS (SELECT 1 FROM mesh.freezes f WHERE f.node IN ('', n.name))
     ORDER BY n.wanted_at, n.name LIMIT $1`,
    [limit],
  );
}

/** After the broker has taken them. Never lowers what is marked, and marks nothing that is not wanted. */
export async function markPublished(db: Db, sent: readonly NodeSequence[]): Promise<void> {
  if (sent.length === 0) return;
  await db.query(
    `WITH sent AS (SELECT * FROM unnest($1::text[], $2::bigint[]) AS i(node, sequence)),
     held AS (SELECT n.name, least(s.sequence, n.wanted_seq) AS sequence
              FROM mesh.nodes n JOIN sent s ON s.node = n.name ORDER BY n.name FOR UPDATE OF n)
     UPDATE mesh.nodes n SET published_seq = h.sequence FROM held h
     WHERE n.name = h.name AND n.published_seq < h.sequence`,
    columns(sent),
  );
}

/**
 * The broker lost what was published (its store was wiped): everything wanted is published again, under the same sequences.
 * `nodes`: only theirs.
 */
export async function forgetPublished(db: Db, nodes?: readonly string[]): Promise<void> {
  await db.query(
    `UPDATE mesh.nodes SET published_seq = 0 WHERE published_seq > 0 ${nodes ? "AND name = ANY($1)" : ""}`,
    nodes ? [nodes] : [],
  );
}

/** `mesh push`: gives `nodes` (default: all declared) their wanted declaration again, under a new sequence. Returns their names. */
export async function pushAgain(tx: Tx, nodes: readonly string[] | null): Promise<string[]> {
  const rows = await tx.query<{ name: string }>(
    `UPDATE mesh.nodes SET wanted_seq = wanted_seq + 1, wanted_at = now()
     WHERE declared AND wanted_revision IS NOT NULL ${nodes ? "AND name = ANY($1)" : ""} RETURNING name`,
    nodes ? [nodes] : [],
  );
  return rows.map(({ name }) => name).sort();
}

/**
 * Somebody (a host, a key) holds a sequence that the store does not know: it was restored from a backup. What is wanted goes
 * above it and is sent again. Returns the nodes that were raised.
 */
export async function raiseSequences(db: Db, found: readonly NodeSequence[]): Promise<string[]> {
  if (found.length === 0) return [];
  const rows = await db.query<{ name: string }>(
    `WITH found AS (SELECT node, max(sequence) AS sequence
                    FROM unnest($1::text[], $2::bigint[]) AS i(node, sequence) GROUP BY node),
     held AS (SELECT n.name, f.sequence FROM mesh.nodes n JOIN found f ON f.node = n.name
              WHERE f.sequence > n.wanted_seq ORDER BY n.name FOR UPDATE OF n)
     UPDATE mesh.nodes n SET wanted_at = now(),
       wanted_seq = h.sequence + CASE WHEN n.wanted_revision IS NULL THEN 0 ELSE 1 END
     FROM held h WHERE n.name = h.name AND h.sequence > n.wanted_seq RETURNING n.name`,
    columns(found),
  );
  return rows.map(({ name }) => name);
}

function columns(list: readonly NodeSequence[]): [string[], number[]] {
  return [list.map(({ node }) => node), list.map(({ sequence }) => sequence)];
}
