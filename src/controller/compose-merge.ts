import type { Catalogue, ModuleVersion, Problem } from "../catalogue/catalogue.ts";
import type { ComposedNode, Composer, Composition } from "../composition/compose.ts";
import { diffBodies } from "../composition/diff.ts";
import { finishInSlices } from "../composition/slices.ts";
import type { CompositionFacts, MeshView, SentView } from "../composition/view.ts";
import type { DeclarationBody } from "../declaration/schema.ts";
import type { ComposeFacts } from "../inventory/generation.ts";
import { type GuardNode, guard } from "../plan/guard.ts";
import type { GuardHit } from "../plan/model.ts";
import type { NodeTiers } from "../plan/new.ts";
import type { Target } from "../plan/store.ts";
import { mixView } from "../plan/tiers.ts";

const TIERS = [0, 1, 2] as const;

/** What is known beside the catalogue when a merge is composed. */
export interface MergeFacts extends ComposeFacts {
  /** Addresses of the mesh-* seats that no module holds. */
  seats: Readonly<Record<string, string>>;
  /** What each of these nodes is wanted to hold now. */
  bodiesOf(nodes: readonly string[]): Promise<ReadonlyMap<string, DeclarationBody>>;
  /** Module versions by tree id, as they were last sent. */
  versionsOf(trees: readonly string[]): Promise<ReadonlyMap<string, ModuleVersion>>;
}

/** A merge composed for all three tiers. With problems nothing else of it may be used. */
export interface ComposedMerge {
  problems: Problem[];
  view: MeshView;
  /** The whole catalogue as it will be in the end. */
  final: Composition;
  /** What each tier gives the nodes that change. */
  tiers: ReadonlyArray<ReadonlyMap<string, ComposedNode>>;
  nodes: NodeTiers[];
  targets: Target[];
  unchanged: Array<{ node: string; sent: SentView }>;
  /** What changed nodes were last sent. */
  before: ReadonlyMap<string, DeclarationBody>;
}

/**
 * Composes a catalogue as it will be in the end and, where nodes change, as each tier sends it. Costs what changed: a node
 * whose revision stays is the same object in all of them.
 */
export async function composeMerge(
  composer: Composer,
  catalogue: Catalogue,
  facts: MergeFacts,
): Promise<ComposedMerge> {
  const base: CompositionFacts = { seats: facts.seats, ports: facts.ports };
  const final = await composer.composeCatalogue(catalogue, base);
  const nothing = { tiers: [], nodes: [], targets: [], unchanged: [], before: new Map() };
  if (final.problems.length > 0) return { problems: final.problems, view: final.view, final, ...nothing };

  const changed = [...final.nodes.values()].filter((n) => facts.wanted.get(n.node)?.revision !== n.revision);
  const names = changed.map(({ node }) => node);
  const before = await facts.bodiesOf(names);
  const tiers = await composeTiers(
    composer,
    final,
    facts,
    { ...base, finalSeats: final.seats },
    before,
    names,
  );
  const problems = tiers.flatMap((tier) => tier.problems);
  if (problems.length > 0) return { problems, view: final.view, final, ...nothing };

  const perTier = tiers.map((tier) => new Map(names.map((name) => [name, tier.nodes.get(name)!])));
  const nodes = names.map((name): NodeTiers => {
    const [m0, m1, m2] = perTier.map((tier) => tier.get(name)?.revision ?? null);
    const revisions = [m0 ?? null, m1 ?? null, m2 ?? null] as const;
    return {
      node: name,
      wanted: facts.wanted.get(name)?.revision ?? null,
      revisions,
      failing: facts.failing.has(name),
    };
  });
  const touched = new Set(names);
  return {
    problems: [],
    view: final.view,
    final,
    tiers: perTier,
    nodes,
    targets: nodes.flatMap((node) => targetsOf(node, perTier)),
    unchanged: [...final.nodes.values()]
      .filter(({ node }) => !touched.has(node) && facts.wanted.has(node))
      .map((composed) => ({ node: composed.node, sent: composed.sent })),
    before,
  };
}

async function composeTiers(
  composer: Composer,
  final: Composition & { view: MeshView },
  facts: MergeFacts,
  composition: CompositionFacts,
  before: ReadonlyMap<string, DeclarationBody>,
  names: readonly string[],
): Promise<Composition[]> {
  if (names.length === 0) return [final, final, final];
  const versions = await versionsSent(final.view, facts);
  // A node that keeps its revision holds just what it is composed to.
  const held = (name: string) => (facts.wanted.has(name) ? final.nodes.get(name)?.body : null);
  const bodies = { get: (name: string) => before.get(name) ?? held(name) };
  const composed: Composition[] = [];
  for (const tier of TIERS) {
    const view = mixView(final.view, facts.sent, (tree) => versions.get(tree), bodies, tier, composer);
    composed.push(await finishInSlices(composer.composing(view, composition)));
  }
  return composed;
}

/** Every module version that some node was last sent, by tree: those of the new catalogue, and the older ones that were kept. */
async function versionsSent(view: MeshView, facts: MergeFacts): Promise<ReadonlyMap<string, ModuleVersion>> {
  const versions = new Map<string, ModuleVersion>();
  for (const { modules } of view.nodes.values())
    for (const { version } of modules.values()) versions.set(version.tree, version);
  const older = new Set<string>();
  for (const { modules } of facts.sent.values())
    for (const { tree } of modules) if (!versions.has(tree)) older.add(tree);
  for (const [tree, version] of await facts.versionsOf([...older])) versions.set(tree, version);
  return versions;
}

/** The tiers that change a node; `sent` is the view of the last tier that still gives the same revision. */
function targetsOf(node: NodeTiers, tiers: ReadonlyArray<ReadonlyMap<string, ComposedNode>>): Target[] {
  const targets: Target[] = [];
  let last = node.wanted;
  for (const tier of TIERS) {
    const composed = tiers[tier]!.get(node.node);
    if (!composed) continue;
    if (composed.revision !== last) {
      targets.push({ node: node.node, tier, revision: composed.revision, sent: composed.sent });
    } else if (targets.length > 0) {
      targets.at(-1)!.sent = composed.sent;
    }
    last = composed.revision;
  }
  return targets;
}

/** What the guard says of a composed merge. `beforeBase`: what a node was sent before the base plan; undefined where it is not known. */
export function guardOf(
  merge: ComposedMerge,
  about: {
    catalogue: Catalogue;
    commit: string;
    base: string | null;
    descends: boolean;
    beforeBase?: ((node: string) => DeclarationBody | null) | undefined;
  },
): GuardHit[] {
  const nodes = [...merge.final.nodes.values()].map((composed): GuardNode<DeclarationBody> => {
    const changed = merge.tiers[2]?.get(composed.node);
    // An unchanged node counts for the shares only: it is the same before and after.
    if (!changed) return { node: composed.node, before: composed.body, after: composed.body };
    const before = merge.before.get(composed.node) ?? null;
    const node: GuardNode<DeclarationBody> = { node: composed.node, before, after: changed.body };
    return about.beforeBase ? { ...node, beforeBase: about.beforeBase(composed.node) } : node;
  });
  return guard<DeclarationBody>({
    nodes,
    settings: about.catalogue.mesh.guard,
    descends: about.descends,
    commit: about.commit,
    base: about.base,
    diff: (before, after) => diffBodies(before, after),
  });
}
