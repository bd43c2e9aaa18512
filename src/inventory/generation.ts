import type { PortTable, SentView } from "../composition/view.ts";
import type { Db, Tx } from "../io/postgres.ts";
import { readPorts } from "./ports.ts";
import { readViews } from "./views.ts";

/** Rises with each change of what nodes were sent: a plan composed against an older one is composed again. */
export async function bumpGeneration(tx: Tx): Promise<void> {
  await tx.query("UPDATE mesh.counters SET value = value + 1 WHERE name = 'generation'");
}

export async function readGeneration(db: Db): Promise<number> {
  const rows = await db.query<{ value: number }>("SELECT value FROM mesh.counters WHERE name = 'generation'");
  return rows[0]!.value;
}

/** What the next composition starts from. Give `generation` and `sent` to `mergePlan`. */
export interface ComposeFacts {
  generation: number;
  /** What each node was last sent. Nodes that were never sent anything are absent, here and in `wanted`. */
  sent: Map<string, SentView>;
  /** The digest under which each of `sent` is kept. */
  digests: ReadonlyMap<string, string>;
  /** The revision, and under which sequence and commit, each node is wanted to hold. */
  wanted: Map<string, { revision: string; sequence: number; commit: string }>;
  /** Nodes whose newest report says failed or refused. */
  failing: ReadonlySet<string>;
  ports: PortTable;
  /** Newest commit any node was sent; null: none was. */
  base: string | null;
}

/** `known`, of an earlier call: only the sent views that changed since are read, the others are the same objects. */
export async function readComposeFacts(db: Db, known?: ComposeFacts): Promise<ComposeFacts> {
  // Read first: what changes after it makes it stale.
  const generation = await readGeneration(db);
  const rows = await db.query<{
    name: string;
    digest: string;
    revision: string;
    sequence: number;
    commit: string;
    failing: boolean;
  }>(
    `SELECT n.name, n.sent AS digest, n.wanted_revision AS revision,
            n.wanted_seq AS sequence, n.wanted_commit AS commit,
            coalesce(r.outcome IN ('failed', 'refused'), false) AS failing
     FROM mesh.nodes n LEFT JOIN mesh.reports r ON r.node = n.name WHERE n.sent IS NOT NULL ORDER BY n.name`,
  );
  const isKnown = ({ name, digest }: { name: string; digest: string }) => known?.digests.get(name) === digest;
  const views = await readViews(
    db,
    rows.filter((row) => !isKnown(row)).map(({ digest }) => digest),
  );
  const state = await db.query<{ base: string | null }>("SELECT base FROM mesh.catalogue_state");
  return {
    generation,
    sent: new Map(
      rows.map((row) => [row.name, isKnown(row) ? known!.sent.get(row.name)! : views.get(row.digest)!]),
    ),
    digests: new Map(rows.map(({ name, digest }) => [name, digest])),
    wanted: new Map(
      rows.map(({ name, revision, sequence, commit }) => [name, { revision, sequence, commit }]),
    ),
    failing: new Set(rows.filter(({ failing }) => failing).map(({ name }) => name)),
    ports: await readPorts(db),
    base: state[0]!.base,
  };
}
