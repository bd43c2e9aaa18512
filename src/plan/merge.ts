import { isDeepStrictEqual } from "node:util";
import type { MeshFile } from "../catalogue/schema/mesh.ts";
import type { PortTable, SentView } from "../composition/view.ts";
import { meshError } from "../errors.ts";
import { bumpGeneration, readGeneration } from "../inventory/generation.ts";
import type { Inventory } from "../inventory/index.ts";
import { type DeclaredNode, declareNodes } from "../inventory/nodes.ts";
import { withPlanLock } from "../inventory/plan-lock.ts";
import { savePorts } from "../inventory/ports.ts";
import { storable, storableJson } from "../inventory/text.ts";
import { keepViews } from "../inventory/views.ts";
import { type Clock, iso } from "../io/clock.ts";
import type { Tx } from "../io/postgres.ts";
import type { Plan } from "./model.ts";
import { missingBodies, nextPlanId, readOpenPlans, savePlan, saveTargets, type Target } from "./store.ts";

export class BodiesMissing extends meshError(
  "bodies-missing",
  "retry",
  (f: { plan: number; revisions: string[] }) =>
    `plan ${f.plan} gives ${f.revisions.length} revisions whose bodies were not kept before (${f.revisions[0]}…); nothing was saved, compose again`,
) {}

/** A composed merge. Module versions and bodies were kept before (`keepModuleVersions`, `keepBodies`), outside the lock. */
export interface Merge {
  /** Of the ComposeFacts it was composed on. */
  generation: number;
  commit: string;
  subject: string;
  mesh: MeshFile;
  /** Every node of the commit. */
  declared: readonly DeclaredNode[];
  /** Every auto port of the commit. */
  ports: PortTable;
  /** For each tier, the nodes whose revision that tier changes. `sent`: the view of the highest tier that still gives this revision. */
  targets: readonly Target[];
  /** Nodes that were sent something before and that no tier changes: only their commit advances, and what composes them. */
  unchanged: ReadonlyArray<{ node: string; sent: SentView }>;
  /** `sent` of the ComposeFacts: only views that differ from it are saved. Equal ones are replaced in it by the new object. */
  sentBefore?: Map<string, SentView>;
  /** The plan under the id it gets; pure. */
  makePlan(id: number): Plan;
}

export type Merged = { stale: true } | { stale: false; plan: Plan; superseded: number[] };

/**
 * Saves a merge as the newest plan, in one transaction under the plan's lock: plans before it are superseded, whatever their
 * state, the nodes of the commit are the declared ones, ports are taken. Sends nothing: `workPlan` does, next.
 * @returns stale: what nodes were sent has changed since it was composed, or another merge was saved; look at the newest plan
 *   and compose again
 * @throws CommitUnknown: give the same merge again, it is stale if it was saved
 */
export async function mergePlan(
  deps: { inventory: Inventory; epoch: number; clock: Pick<Clock, "now"> },
  merge: Merge,
): Promise<Merged> {
  const { inventory, epoch, clock } = deps;
  const moved = movedViews(merge);
  const targetViews = await keepViews(
    inventory.db,
    merge.targets.map(({ sent }) => sent),
  );
  const movedDigests = await keepViews(
    inventory.db,
    moved.map(({ sent }) => sent),
  );
  const merged = await withPlanLock(inventory, { mode: "wait", epoch }, async (tx): Promise<Merged> => {
    if ((await readGeneration(tx)) !== merge.generation) return { stale: true };
    const id = await nextPlanId(tx);
    const plan = merge.makePlan(id);
    const superseded = await supersede(tx, id, iso(clock.now()));
    await saveTargets(tx, id, merge.targets, targetViews);
    const missing = await missingBodies(tx, id);
    if (missing.length > 0) throw new BodiesMissing({ plan: id, revisions: missing });
    await savePlan(tx, plan);
    await declareNodes(tx, merge.declared);
    await savePorts(tx, id, merge.ports);
    await advance(
      tx,
      merge,
      moved.map(({ node }) => node),
      movedDigests,
    );
    await saveGood(tx, merge);
    return { stale: false, plan, superseded };
  });
  return merged as Merged;
}

async function supersede(tx: Tx, by: number, at: string): Promise<number[]> {
  const open = await readOpenPlans(tx);
  for (const plan of open)
    await savePlan(tx, {
      ...plan,
      state: "superseded",
      reason: null,
      supersededBy: by,
      finishedAt: at,
    });
  return open.map(({ id }) => id);
}

async function advance(tx: Tx, merge: Merge, nodes: string[], digests: string[]): Promise<void> {
  // Also where nothing else changed: a merge that is saved twice (its COMMIT was not answered) finds itself stale.
  await bumpGeneration(tx);
  if (merge.unchanged.length === 0) return;
  await tx.query(
    "UPDATE mesh.nodes SET wanted_commit = $1 WHERE name = ANY($2) AND wanted_revision IS NOT NULL",
    [merge.commit, merge.unchanged.map(({ node }) => node)],
  );
  if (nodes.length === 0) return;
  await tx.query(
    `UPDATE mesh.nodes n SET sent = u.digest FROM unnest($1::text[], $2::text[]) AS u(node, digest)
     WHERE n.name = u.node AND n.wanted_revision IS NOT NULL`,
    [nodes, digests],
  );
}

/** A merge leaves most nodes as they are: of ten thousand views only those that differ are sent to the store. */
function movedViews({ unchanged, sentBefore }: Merge): Merge["unchanged"] {
  if (!sentBefore) return unchanged;
  return unchanged.filter(({ node, sent }) => {
    const before = sentBefore.get(node);
    if (before === sent) return false;
    if (!before || !isDeepStrictEqual(before, sent)) return true;
    // From now on they are told apart by identity.
    sentBefore.set(node, sent);
    return false;
  });
}

async function saveGood(tx: Tx, { commit, subject, mesh, targets }: Merge): Promise<void> {
  await tx.query(
    `UPDATE mesh.catalogue_state SET good_commit = $1, good_subject = $2, mesh = $3,
       base = CASE WHEN $4::boolean THEN $1 ELSE base END`,
    [commit, storable(subject), storableJson(mesh), targets.length === 0],
  );
}
