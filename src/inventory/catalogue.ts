import type { Problem } from "../catalogue/catalogue.ts";
import type { MeshFile } from "../catalogue/schema/mesh.ts";
import type { Db } from "../io/postgres.ts";
import { storable, storableJson } from "./text.ts";

/** What was last seen of the watched ref. `base` is the newest commit any node was sent; `mesh` is mesh.json of the newest good one. */
export interface CatalogueState {
  ref: string | null;
  commit: string | null;
  subject: string | null;
  seenAt: string | null;
  problems: Problem[];
  goodCommit: string | null;
  goodSubject: string | null;
  base: string | null;
  mesh: MeshFile | null;
  /** The commit of the newest plan that is done. */
  deployed: string | null;
}

export async function readCatalogueState(db: Db): Promise<CatalogueState> {
  const rows = await db.query<CatalogueState & Record<string, unknown>>(
    `SELECT ref, commit, subject, seen_at AS "seenAt", problems, good_commit AS "goodCommit",
            good_subject AS "goodSubject", base, mesh,
            (SELECT commit FROM mesh.plans WHERE state = 'done' ORDER BY id DESC LIMIT 1) AS deployed
     FROM mesh.catalogue_state`,
  );
  return rows[0]!;
}

/** The ref was read at this commit. With problems the last good commit stays; null `commit`: it could not be read at all. */
export async function saveSeen(
  db: Db,
  seen: { ref: string; commit: string | null; subject: string; problems: readonly Problem[] },
): Promise<void> {
  await db.query(
    `UPDATE mesh.catalogue_state SET ref = $1, commit = coalesce($2, commit), problems = $4,
       subject = CASE WHEN $2::text IS NULL THEN subject ELSE $3 END, seen_at = now()`,
    [seen.ref, seen.commit, storable(seen.subject), storableJson(seen.problems)],
  );
}
