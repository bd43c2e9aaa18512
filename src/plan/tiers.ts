import type { Problem } from "../catalogue/catalogue.ts";
import type { Composer, Composition } from "../composition/composer.ts";
import { allocatePorts } from "../composition/ports.ts";
import { finish, finishInSlices, type Work } from "../composition/slices.ts";
import type { CompositionFacts, MeshView, NodeView, PortTable } from "../composition/view.ts";
import { mixing, type SentState } from "./mix.ts";
import type { TierNumber } from "./model.ts";

export { mixView, type SentState } from "./mix.ts";

export interface TieredComposition {
  tiers: [Composition, Composition, Composition];
  /** Of all three tiers; with any, the commit is refused. */
  problems: Problem[];
  /** The auto ports of all three tiers: those of the plan while it runs. Afterwards only `tiers[2].ports` are in use. */
  ports: PortTable;
}

/** Composes what the three tiers of a plan send. A seat or port has the same value in every tier that does not move it. */
export function* composingTiers(
  composer: Composer,
  next: MeshView,
  state: SentState,
  facts: CompositionFacts,
): Work<TieredComposition> {
  const views: MeshView[] = [];
  for (const tier of [0, 1, 2] as const) views.push(yield* mixing(next, state, tier, composer));
  const [first, second, last] = views as [MeshView, MeshView, MeshView];
  const { known, used } = yield* jointPorts(composer, [first, second, last], facts.ports);
  const joint = { ...facts, ports: known };
  const final = yield* composer.composing(last, joint);
  const lastSeat = (node: string, seat: string) =>
    state.sent.get(node)?.modules.find(({ seats }) => Object.hasOwn(seats, seat))?.seats[seat];
  const early = { ...joint, finalSeats: final.seats, lastSeat };
  const tier0 = yield* composer.composing(first, early);
  const tier1 = yield* composer.composing(second, early);
  return { tiers: [tier0, tier1, final], problems: allProblems(tier0, tier1, final), ports: used };
}

export function composeTiers(
  composer: Composer,
  next: MeshView,
  state: SentState,
  facts: CompositionFacts,
): TieredComposition {
  return finish(composingTiers(composer, next, state, facts));
}

/** As composeTiers, giving the event loop a turn at least every `sliceMs` milliseconds (default 10). */
export function composeTiersInSlices(
  composer: Composer,
  next: MeshView,
  state: SentState,
  facts: CompositionFacts,
  sliceMs?: number,
): Promise<TieredComposition> {
  return finishInSlices(composingTiers(composer, next, state, facts), sliceMs);
}

/** The final tier's problems are the commit's own; those that only a tier on the way has say so. */
function allProblems(tier0: Composition, tier1: Composition, final: Composition): Problem[] {
  const seen = new Set(final.problems.map((problem) => `${problem.file}\n${problem.message}`));
  const early = [tier0, tier1].flatMap((composition, tier) =>
    composition.problems
      .filter((problem) => !seen.has(`${problem.file}\n${problem.message}`))
      .map((problem) => ({ ...problem, message: `on the way, in tier ${tier}: ${problem.message}` })),
  );
  return [...final.problems, ...early];
}

/** One number per auto port for all tiers of a plan. `known` also lists numbers that are not free yet. */
function* jointPorts(
  composer: Composer,
  views: readonly MeshView[],
  ports: PortTable,
): Work<{ known: PortTable; used: PortTable }> {
  const known = new Map(ports);
  const used = new Map<string, ReadonlyMap<string, number>>();
  const last = views.at(-1) as MeshView;
  for (const name of last.nodes.keys()) {
    yield;
    const shapes = new Set(views.map((view) => composer.shape(view.nodes.get(name) as NodeView, view.mixed)));
    const before = ports.get(name);
    const { ports: own } = allocatePorts([...shapes], last.mesh.ports, before);
    if (own.size === 0) continue;
    used.set(name, own);
    const isNew = [...own].some(([pair, number]) => before?.get(pair) !== number);
    if (isNew) known.set(name, new Map([...(before ?? []), ...own]));
  }
  return { known, used };
}

/** What each tier changes, in order: the nodes whose revision it moves. */
export interface TierTouch {
  tier: TierNumber;
  nodes: Array<{ node: string; revision: string }>;
}

/**
 * The nodes that each tier touches. A node that was never sent anything is passed over while it has no module yet, but
 * gets its (perhaps empty) declaration by tier 2.
 * @param sentRevision the revision a node was last sent, null when it never was
 */
export function touchedNodes(
  tiers: TieredComposition["tiers"],
  sentRevision: (node: string) => string | null,
): [TierTouch, TierTouch, TierTouch] {
  const current = new Map<string, string | null>();
  const touches = tiers.map((composition, index) => {
    const nodes: TierTouch["nodes"] = [];
    for (const [node, composed] of composition.nodes) {
      const before = current.has(node) ? current.get(node) : sentRevision(node);
      if (composed.revision === before) continue;
      if (before === null && index < 2 && composed.isEmpty) continue;
      current.set(node, composed.revision);
      nodes.push({ node, revision: composed.revision });
    }
    return { tier: index as TierNumber, nodes };
  });
  return touches as [TierTouch, TierTouch, TierTouch];
}
