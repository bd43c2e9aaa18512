import type { PortTable, SentView } from "../composition/view.ts";
import type { Db, Tx } from "../io/postgres.ts";
import { readPorts } from "./ports.ts";

/** Rises with each change of what nodes were sent: a plan composed against an older one is composed again. */
export async function bumpGeneration(tx: Tx): Promise<void> {
  await tx.query("UPDATE mesh.counters SET value = value + 1 WHERE name = 'generation'");
}

export async function readGeneration(db: Db): Promise<number> {
  const rows = await db.query<{ value: number }>("SELECT value FROM mesh.counters WHERE name = 'generation'");
  return rows[0]!.value;
}

/** What the next composition starts from. Give `generation` to `mergePlan`. */
export interface ComposeFacts {
  generation: number;
  /** What each node was last sent. */
  sent: Map<string, SentView>;
  /** The revision, and under which sequence, each node is wanted to hold. */
  wanted: Map<string, { revision: string; sequence: number; commit: string }>;
  ports: PortTable;
  /** Newest commit any node was sent; null: none was. */
  base: string | null;
}

export async function readComposeFacts(db: Db): Promise<ComposeFacts> {
  // Read first: what changes after it makes it stale.
  const generation = await readGeneration(db);
  const rows = await db.query<{
    name: string;
    sent: SentView;
    revision: string;
    sequence: number;
    commit: string;
  }>(
    `SELECT name, sent, wanted_revision AS revision, wanted_seq AS sequence, wanted_commit AS commit
     FROM mesh.nodes WHERE sent IS NOT NULL ORDER BY name`,
  );
  const state = await db.query<{ base: string | null }>("SELECT base FROM mesh.catalogue_state");
  return {
    generation,
    sent: new Map(rows.map(({ name, sent }) => [name, sent])),
    wanted: new Map(
      rows.map(({ name, revision, sequence, commit }) => [name, { revision, sequence, commit }]),
    ),
    ports: await readPorts(db),
    base: state[0]!.base,
  };
}
