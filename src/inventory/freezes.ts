import type { Db, Tx } from "../io/postgres.ts";
import { storable } from "./text.ts";

export interface Freeze {
  reason: string;
  by: string;
  since: string;
}

/** How the table writes "the whole mesh". */
const MESH = "";

/** Holds all sending to `node` (null: to everyone) from the next statement on. Freezing again changes reason and name only. */
export async function freeze(
  tx: Tx,
  node: string | null,
  why: { reason: string; by: string },
): Promise<Freeze> {
  const rows = await tx.query<Freeze & Record<string, unknown>>(
    `INSERT INTO mesh.freezes (node, reason, by) VALUES ($1, $2, $3)
     ON CONFLICT (node) DO UPDATE SET reason = excluded.reason, by = excluded.by RETURNING reason, by, since`,
    [node ?? MESH, storable(why.reason), storable(why.by)],
  );
  return rows[0]!;
}

/** False: it was not frozen. */
export async function unfreeze(tx: Tx, node: string | null): Promise<boolean> {
  return (await tx.query("DELETE FROM mesh.freezes WHERE node = $1 RETURNING 1", [node ?? MESH])).length > 0;
}

/** The freeze of the whole mesh; single nodes carry theirs in their row (`readNodes`). */
export async function readMeshFreeze(db: Db): Promise<Freeze | null> {
  const rows = await db.query<Freeze & Record<string, unknown>>(
    "SELECT reason, by, since FROM mesh.freezes WHERE node = $1",
    [MESH],
  );
  return rows[0] ?? null;
}
