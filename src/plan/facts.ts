import { readMeshFreeze } from "../inventory/freezes.ts";
import type { Db } from "../io/postgres.ts";
import type { NodeFacts, Plan, PlanFacts } from "./model.ts";

/** What plan work knows beside the inventory. */
export interface WorkFacts {
  /** When the active controller connected to the broker (ISO); null: it is not connected. */
  connectedAt: string | null;
  /** When it last saw its wall clock step (`watchSteps`), ISO. */
  steppedAt?: string | null;
  builderThere: boolean;
  builds?: PlanFacts["builds"];
}

/** Everything decide looks at, read in two statements whatever the number of nodes. */
export async function readFacts(db: Db, plan: Plan, work: WorkFacts): Promise<PlanFacts> {
  const names = [...new Set(plan.tiers.flatMap(({ nodes }) => nodes.map(({ node }) => node)))];
  const freeze = await readMeshFreeze(db);
  return {
    nodes: await readNodeFacts(db, plan.id, names),
    frozen: freeze && { reason: freeze.reason, by: freeze.by },
    newerPlan: null,
    connectedAt: work.connectedAt,
    steppedAt: work.steppedAt ?? null,
    builds: work.builds ?? new Map(),
    builderThere: work.builderThere,
  };
}

async function readNodeFacts(db: Db, plan: number, names: string[]): Promise<Map<string, NodeFacts>> {
  const rows = await db.query<FactsRow>(
    `SELECT i.name, s.at AS seen, n.declared_at AS declared, f.node IS NOT NULL AS frozen, coalesce(n.mode = 'observe', false) AS observed,
            k.node IS NOT NULL AS skipped, coalesce(n.wanted_seq, 0) AS wanted, n.wanted_revision,
            r.sequence, r.revision, r.outcome, r.error, r.progress
     FROM unnest($1::text[]) AS i(name)
     LEFT JOIN mesh.nodes n ON n.name = i.name LEFT JOIN mesh.seen s ON s.node = i.name
     LEFT JOIN mesh.reports r ON r.node = i.name LEFT JOIN mesh.freezes f ON f.node = i.name
     LEFT JOIN (SELECT DISTINCT node FROM mesh.plan_commands WHERE plan = $2 AND command = 'skip' AND refusal IS NULL) k
       ON k.node = i.name`,
    [names, plan],
  );
  return new Map(rows.map((row) => [row.name, nodeFacts(row)]));
}

interface FactsRow {
  name: string;
  seen: string | null;
  declared: string | null;
  frozen: boolean;
  observed: boolean;
  skipped: boolean;
  wanted: number;
  wanted_revision: string | null;
  sequence: number;
  revision: string | null;
  /** Null: it never reported, nor is anything else of a report there. */
  outcome: NonNullable<NodeFacts["reported"]>["outcome"] | null;
  error: string | null;
  progress: string;
}

function nodeFacts(row: FactsRow): NodeFacts {
  const { sequence, revision, outcome, error, progress } = row;
  return {
    node: row.name,
    seenAt: row.seen,
    declaredAt: row.declared,
    frozen: row.frozen,
    observed: row.observed,
    skipped: row.skipped,
    wantedSequence: row.wanted,
    wantedRevision: row.wanted_revision,
    reported: outcome === null ? null : { sequence, revision, outcome, error, progress },
  };
}
