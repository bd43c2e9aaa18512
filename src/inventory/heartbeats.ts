import type { Db } from "../io/postgres.ts";
import { storable } from "./text.ts";

/**
 * Heartbeats of at most a second or so, in one statement; each node once is enough. Nothing happens when the epoch is over.
 * Returns nodes that hold a higher sequence than is wanted of them (give them to `raiseSequences`).
 */
export async function recordHeartbeats(
  db: Db,
  epoch: number,
  beats: ReadonlyArray<{ node: string; sequence: number }>,
): Promise<Array<{ node: string; sequence: number }>> {
  if (beats.length === 0) return [];
  return db.query<{ node: string; sequence: number }>(
    `WITH beats AS (SELECT node, max(sequence) AS sequence
                    FROM unnest($1::text[], $2::bigint[]) AS i(node, sequence) GROUP BY node),
     stored AS (
       INSERT INTO mesh.seen AS s (node, at) SELECT node, now() FROM beats
       WHERE EXISTS (SELECT 1 FROM mesh.active WHERE epoch = $3) ORDER BY node
       ON CONFLICT (node) DO UPDATE SET at = greatest(s.at, excluded.at))
     SELECT b.node, b.sequence FROM beats b JOIN mesh.nodes n ON n.name = b.node AND b.sequence > n.wanted_seq`,
    [beats.map((b) => storable(b.node)), beats.map((b) => b.sequence), epoch],
  );
}
