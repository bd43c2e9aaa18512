import type { Catalogue, ModuleVersion, Problem } from "../catalogue/catalogue.ts";
import type { CatalogueReader } from "../catalogue/open.ts";
import { allProblems, type Composer } from "../composition/compose.ts";
import type { DeclarationBody } from "../declaration/schema.ts";
import { MeshError, messageOf } from "../errors.ts";
import { keepBodies, readWantedBodies } from "../inventory/bodies.ts";
import { type CatalogueState, readCatalogueState, saveSeen } from "../inventory/catalogue.ts";
import { type ComposeFacts, readComposeFacts } from "../inventory/generation.ts";
import type { Inventory } from "../inventory/index.ts";
import { keepModuleVersions, readModuleVersions } from "../inventory/modules.ts";
import type { Clock } from "../io/clock.ts";
import type { Fault } from "../io/faults.ts";
import { mergePlan } from "../plan/merge.ts";
import type { GuardHit, Plan } from "../plan/model.ts";
import { newPlan } from "../plan/new.ts";
import { readPlan, readPlans } from "../plan/store.ts";
import { type ComposedMerge, composeMerge, guardOf } from "./compose-merge.ts";
import type { Sender } from "./sender.ts";

/** Their texts are made in one go: verbs wait for so many. */
const BODIES_AT_ONCE = 100;
/** Module versions are marked as in use again after so long, ms (monotonic). */
const KEPT_AGAIN_AFTER = 1_800_000;

export interface ReconcileDeps {
  inventory: Inventory;
  /** Of the active controller. */
  epoch: number;
  reader: CatalogueReader;
  composer: Composer;
  sender: Sender;
  clock: Clock;
  ref: string;
  seats: Readonly<Record<string, string>>;
  fault: Fault;
  /** What was read of the inventory last time: only what moved since is read again. */
  memory: { facts: ComposeFacts | null; kept: Map<string, number> };
}

/**
 * What a look at the ref led to. `same`: nothing new. `refused`: problems, the last good commit stays in force.
 * `merged`: a new plan (it sends nothing yet).
 */
export type Reconciled =
  | { outcome: "same"; commit: string }
  | { outcome: "refused"; commit: string | null; problems: Problem[] }
  | { outcome: "merged"; commit: string; plan: Plan; superseded: number[] };

/**
 * Reads the ref and, where its commit or what it composes to is new, makes a plan of it. All or nothing: a commit that
 * does not validate or compose changes nothing but what `status` shows.
 */
export async function reconcile(deps: ReconcileDeps): Promise<Reconciled> {
  const tip = await readTip(deps);
  if ("problem" in tip) return refuse(deps, { commit: null, subject: "", problems: [tip.problem] });
  const read = await readCommit(deps, tip.commit);
  if (!read.ok)
    return refuse(deps, { commit: tip.commit, subject: read.subject, problems: await allProblems(read) });
  for (;;) {
    const state = await readCatalogueState(deps.inventory.db);
    const facts = await mergeFacts(deps);
    const merge = await composeMerge(deps.composer, read.catalogue, facts);
    if (merge.problems.length > 0)
      return refuse(deps, { commit: tip.commit, subject: read.catalogue.subject, problems: merge.problems });
    await deps.sender.offer(objectsOf(merge));
    await saveSeen(deps.inventory.db, {
      ref: deps.ref,
      commit: tip.commit,
      subject: read.catalogue.subject,
      problems: [],
    });
    if (state.goodCommit === tip.commit && (await isPlanned(deps, merge)))
      return { outcome: "same", commit: tip.commit };
    const merged = await saveMerge(deps, {
      catalogue: read.catalogue,
      commit: tip.commit,
      state,
      facts,
      merge,
    });
    if (!merged.stale)
      return { outcome: "merged", commit: tip.commit, plan: merged.plan, superseded: merged.superseded };
  }
}

/** A read that fails is never an empty catalogue: it is a problem, and the last good commit stays. */
async function readTip(deps: ReconcileDeps): Promise<{ commit: string } | { problem: Problem }> {
  try {
    return { commit: await deps.reader.resolveRef() };
  } catch (error) {
    if (!(error instanceof MeshError)) throw error;
    return { problem: unread(messageOf(error)) };
  }
}

/** A commit that cannot be read whole shows in `status` while it is tried again: its missing objects may yet arrive. */
async function readCommit(deps: ReconcileDeps, commit: string) {
  try {
    return await deps.reader.read(commit);
  } catch (error) {
    if (error instanceof MeshError)
      await refuse(deps, { commit, subject: "", problems: [unread(messageOf(error))] });
    throw error;
  }
}

function unread(message: string): Problem {
  return { file: "", line: 0, column: 0, path: "", message };
}

async function refuse(
  deps: ReconcileDeps,
  found: { commit: string | null; subject: string; problems: Problem[] },
): Promise<Reconciled> {
  await saveSeen(deps.inventory.db, { ref: deps.ref, ...found });
  return { outcome: "refused", commit: found.commit, problems: found.problems };
}

async function mergeFacts(deps: ReconcileDeps) {
  const { db } = deps.inventory;
  const facts = await readComposeFacts(db, deps.memory.facts ?? undefined);
  deps.memory.facts = facts;
  return {
    ...facts,
    seats: deps.seats,
    bodiesOf: (names: readonly string[]) => readWantedBodies(db, names),
    versionsOf: (trees: readonly string[]) => readModuleVersions(db, trees),
  };
}

/** Whether the newest plan already leads to just this: every node is wanted to hold it, or will be by that plan. */
async function isPlanned(deps: ReconcileDeps, merge: ComposedMerge): Promise<boolean> {
  const plan = await readPlan(deps.inventory.db, "latest");
  if (!plan) return false;
  const ends = new Map(
    plan.tiers.flatMap(({ nodes }) => nodes.map(({ node, revision }) => [node, revision])),
  );
  return merge.nodes.every(({ node, revisions }) => ends.get(node) === revisions[2]);
}

interface Composed {
  catalogue: Catalogue;
  commit: string;
  state: CatalogueState;
  facts: Awaited<ReturnType<typeof mergeFacts>>;
  merge: ComposedMerge;
}

async function saveMerge(deps: ReconcileDeps, composed: Composed) {
  const { inventory, epoch, clock } = deps;
  const { catalogue, commit, facts, merge } = composed;
  const hits = await guardHits(deps, composed);
  const { message } = await deps.reader.commit(commit);
  await keepWhatIsSent(deps, merge);
  deps.fault("merge");
  return mergePlan(
    { inventory, epoch, clock },
    {
      generation: facts.generation,
      commit,
      subject: catalogue.subject,
      mesh: catalogue.mesh,
      declared: [...catalogue.nodes].map(([name, { address, labels, mode, retire }]) => ({
        name,
        address,
        labels,
        mode,
        retire,
      })),
      ports: merge.tiers[2].ports,
      targets: merge.targets,
      unchanged: merge.unchanged,
      sentBefore: facts.sent,
      makePlan: (id) =>
        newPlan(
          {
            id,
            commit,
            subject: catalogue.subject,
            message,
            base: facts.base,
            nodes: merge.nodes,
            rollout: catalogue.mesh.rollout,
            heartbeatMs: catalogue.mesh.host.heartbeat,
            guard: hits,
          },
          clock.now(),
        ),
    },
  );
}

function objectsOf({ tiers, nodes }: ComposedMerge) {
  const of = (names: Iterable<string>) =>
    [...names].flatMap((name) => tiers.flatMap((tier) => tier.nodes.get(name) ?? []));
  return { changed: of(nodes.map(({ node }) => node)), all: () => of(tiers[2].nodes.keys()) };
}

/** Everything that targets point to is in the store before the plan is. What was kept and is not sent goes after an hour. */
async function keepWhatIsSent(
  { inventory, clock, memory }: ReconcileDeps,
  merge: ComposedMerge,
): Promise<void> {
  const now = clock.monotonic();
  const versions = new Map<string, ModuleVersion>();
  for (const { modules } of merge.view.nodes.values()) {
    for (const { version } of modules.values()) {
      if (now - (memory.kept.get(version.tree) ?? Number.NEGATIVE_INFINITY) > KEPT_AGAIN_AFTER)
        versions.set(version.tree, version);
    }
  }
  await keepModuleVersions(inventory.db, versions.values());
  for (const tree of versions.keys()) memory.kept.set(tree, now);
  for (let at = 0; at < merge.targets.length; at += BODIES_AT_ONCE) {
    const bodies = merge.targets.slice(at, at + BODIES_AT_ONCE).map(({ node, tier, revision }) => ({
      node,
      revision,
      body: merge.tiers[tier].nodes.get(node)!.text(),
    }));
    await keepBodies(inventory.db, bodies);
  }
}

async function guardHits(deps: ReconcileDeps, composed: Composed): Promise<GuardHit[]> {
  const { catalogue, commit, facts, merge } = composed;
  const { base } = facts;
  const descends = base === null || base === commit || (await deps.reader.isAncestor(base, commit));
  const about = { catalogue, commit, base, descends };
  const hits = await guardOf(merge, about);
  if (hits.length === 0 || base === null) return hits;
  const beforeBase = await bodiesBefore(deps, base, facts.ports);
  return beforeBase ? guardOf(merge, { ...about, beforeBase }) : hits;
}

/**
 * What nodes were declared to hold before the base plan: undoing only what that plan added needs no confirm.
 * Undefined where there was nothing before it, or its commit is gone.
 */
async function bodiesBefore(
  deps: ReconcileDeps,
  base: string,
  ports: Composed["facts"]["ports"],
): Promise<((node: string) => DeclarationBody | null) | undefined> {
  const plan = (await readPlans(deps.inventory.db)).find(({ commit }) => commit === base);
  if (!plan?.base) return undefined;
  const read = await deps.reader.read(plan.base).catch(() => null);
  if (!read?.ok) return undefined;
  const composed = await deps.composer.composeCatalogue(read.catalogue, { seats: deps.seats, ports });
  return (node) => composed.nodes.get(node)?.body ?? null;
}
