import type { Db, Tx } from "../io/postgres.ts";

/** How far a stream was folded. `created` tells a stream from one of the same name made anew. */
export interface Position {
  stream: string;
  created: string;
  /** The last sequence of which everything before was folded. */
  seq: number;
}

/** Never goes back within one stream; a stream made anew starts anew. */
export async function savePosition(tx: Tx, { stream, created, seq }: Position): Promise<void> {
  await tx.query(
    `INSERT INTO mesh.folded AS f (stream, created, seq) VALUES ($1, $2, $3)
     ON CONFLICT (stream) DO UPDATE SET created = excluded.created, at = now(),
       seq = CASE WHEN f.created = excluded.created THEN greatest(f.seq, excluded.seq) ELSE excluded.seq END`,
    [stream, created, seq],
  );
}

/** Where to go on in `stream`; null: it was never folded. */
export async function readPosition(db: Db, stream: string): Promise<Position | null> {
  const rows = await db.query<Position & Record<string, unknown>>(
    "SELECT stream, created, seq FROM mesh.folded WHERE stream = $1",
    [stream],
  );
  return rows[0] ?? null;
}
