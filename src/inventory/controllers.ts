import type { Db } from "../io/postgres.ts";

export type Role = "active" | "standby";

/** A row of `mesh status`; `since` and `seenAt` ISO. */
export interface ControllerRow {
  id: string;
  role: Role;
  since: string;
  seenAt: string;
}

/** Seconds without renewal after which a standby takes over, by Postgres' own clock. */
export const LEASE_SECONDS = 5;

/** Takes the seat when it is free, has run out, or is this holder's own from before; the epoch rises by one. Null: another holds it. */
export async function takeSeat(db: Db, id: string): Promise<number | null> {
  const rows = await db.query<{ epoch: number }>(
    `UPDATE mesh.active SET epoch = epoch + 1, holder = $1, since = clock_timestamp(), renewed_at = clock_timestamp()
     WHERE holder IS NULL OR holder = $1 OR renewed_at < clock_timestamp() - make_interval(secs => $2)
     RETURNING epoch`,
    [id, LEASE_SECONDS],
  );
  return rows[0]?.epoch ?? null;
}

/** False: the epoch is over. */
export async function renewSeat(db: Db, id: string, epoch: number): Promise<boolean> {
  const rows = await db.query(
    "UPDATE mesh.active SET renewed_at = clock_timestamp() WHERE holder = $1 AND epoch = $2 RETURNING 1",
    [id, epoch],
  );
  return rows.length === 1;
}

/** Frees the seat for whoever asks first. Nothing happens when the epoch is over. */
export async function freeSeat(db: Db, id: string, epoch: number): Promise<void> {
  await db.query("UPDATE mesh.active SET holder = NULL WHERE holder = $1 AND epoch = $2", [id, epoch]);
}

/** Says that controller `id` lives, as what. */
export async function announceController(db: Db, id: string, role: Role): Promise<void> {
  await db.query(
    `INSERT INTO mesh.controllers AS c (id, role) VALUES ($1, $2)
     ON CONFLICT (id) DO UPDATE SET role = excluded.role, seen_at = clock_timestamp(),
       since = CASE WHEN c.role = excluded.role THEN c.since ELSE clock_timestamp() END`,
    [id, role],
  );
}

export async function forgetController(db: Db, id: string): Promise<void> {
  await db.query("DELETE FROM mesh.controllers WHERE id = $1", [id]);
}

/** Those heard in the last 10 s. Who is active is what the seat's row says, whatever a paused one last said of itself. */
export async function readControllers(db: Db): Promise<ControllerRow[]> {
  return db.query<ControllerRow & Record<string, unknown>>(
    `SELECT c.id, CASE WHEN a.holder = c.id THEN 'active' ELSE 'standby' END AS role,
            CASE WHEN a.holder = c.id THEN a.since ELSE c.since END AS since, c.seen_at AS "seenAt"
     FROM mesh.controllers c CROSS JOIN mesh.active a
     WHERE c.seen_at > clock_timestamp() - interval '10 seconds' ORDER BY c.id`,
  );
}

/** The epoch in force, and who holds it; holder null: free or run out. */
export async function readSeat(db: Db): Promise<{ epoch: number; holder: string | null }> {
  const rows = await db.query<{ epoch: number; holder: string | null }>(
    `SELECT epoch, CASE WHEN renewed_at >= clock_timestamp() - make_interval(secs => $1) THEN holder END AS holder
     FROM mesh.active`,
    [LEASE_SECONDS],
  );
  return rows[0]!;
}
