import { breather } from "../catalogue/breather.ts";
import type { Catalogue, ModuleVersion, Problem } from "../catalogue/catalogue.ts";
import type { ComposedNode, Composer, Composition } from "../composition/compose.ts";
import { diffBodies } from "../composition/diff.ts";
import { finishInSlices } from "../composition/slices.ts";
import type { CompositionFacts, MeshView, SentView } from "../composition/view.ts";
import type { DeclarationBody } from "../declaration/schema.ts";
import type { ComposeFacts } from "../inventory/generation.ts";
import { type GuardNode, guarding, type UnchangedNode } from "../plan/guard.ts";
import type { GuardHit } from "../plan/model.ts";
import type { NodeTiers } from "../plan/new.ts";
import type { Target } from "../plan/store.ts";
import { composeTiersInSlices } from "../plan/tiers.ts";

const TIERS = [0, 1, 2] as const;

interface Bodies {
  get(node: string): DeclarationBody | undefined;
}

/** What is known beside the catalogue when a merge is composed. */
export interface MergeFacts extends ComposeFacts {
  /** Addresses of the mesh-* seats that no module holds. */
  seats: Readonly<Record<string, string>>;
  /** What each of these nodes is wanted to hold now. */
  bodiesOf(nodes: readonly string[]): Promise<Bodies>;
  /** Module versions by tree id, as they were last sent. */
  versionsOf(trees: readonly string[]): Promise<ReadonlyMap<string, ModuleVersion>>;
}

/** A merge composed for all three tiers. With problems nothing else of it may be used. */
export interface ComposedMerge {
  problems: Problem[];
  view: MeshView;
  /** What tiers 0, 1 and 2 send; the last is the catalogue as it will be. */
  tiers: readonly [Composition, Composition, Composition];
  /** The nodes that change, and what each tier gives them. */
  nodes: NodeTiers[];
  targets: Target[];
  unchanged: Array<{ node: string; sent: SentView }>;
  /** What changed nodes were last sent. */
  before: Bodies;
}

/**
 * Composes a catalogue as each tier of its plan sends it. Costs what changed: a node whose inputs stay is the same object
 * in all tiers, and as in the merge before.
 */
export async function composeMerge(
  composer: Composer,
  catalogue: Catalogue,
  facts: MergeFacts,
): Promise<ComposedMerge> {
  const known: CompositionFacts = { seats: facts.seats, ports: facts.ports };
  const plain = await composer.composeCatalogue(catalogue, known);
  const nothing = {
    view: plain.view,
    nodes: [],
    targets: [],
    unchanged: [],
    before: new Map<string, DeclarationBody>(),
  };
  if (plain.problems.length > 0)
    return { ...nothing, problems: plain.problems, tiers: [plain, plain, plain] };

  const wanted = (node: string) => facts.wanted.get(node)?.revision ?? null;
  const moved = [...plain.nodes.values()].filter(({ node, revision }) => wanted(node) !== revision);
  const before = await facts.bodiesOf(moved.map(({ node }) => node));
  const versions = await versionsSent(plain.view, facts);
  const state = {
    sent: facts.sent,
    versions: (tree: string) => versions.get(tree),
    // A node that keeps its revision holds just what it is composed to.
    lastBodies: {
      get: (node: string) => before.get(node) ?? (wanted(node) === null ? null : plain.nodes.get(node)?.body),
    },
  };
  const { tiers, problems } = await composeTiersInSlices(composer, plain.view, state, known);
  if (problems.length > 0) return { ...nothing, problems, tiers };

  const merge: ComposedMerge = { ...nothing, problems: [], tiers, before };
  const breathe = breather();
  for (const [node, { sent }] of tiers[2].nodes) {
    await breathe();
    const held = wanted(node);
    const revisions = revisionsOf(tiers, node, held);
    const of: NodeTiers = { node, wanted: held, revisions, failing: facts.failing.has(node) };
    if (revisions.some((revision) => revision !== null && revision !== held)) {
      merge.nodes.push(of);
      merge.targets.push(...targetsOf(of, tiers));
    } else if (held !== null) merge.unchanged.push({ node, sent });
  }
  return merge;
}

/** A node that was never sent anything is passed over while it has nothing yet; tier 2 gives it its declaration, even an empty one. */
function revisionsOf(
  tiers: ComposedMerge["tiers"],
  node: string,
  wanted: string | null,
): NodeTiers["revisions"] {
  const [m0, m1, m2] = tiers.map(({ nodes }) => nodes.get(node)) as [
    ComposedNode,
    ComposedNode,
    ComposedNode,
  ];
  const skip0 = wanted === null && m0.isEmpty;
  const skip1 = skip0 && m1.isEmpty;
  return [skip0 ? null : m0.revision, skip1 ? null : m1.revision, m2.revision];
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
function targetsOf({ node, wanted, revisions }: NodeTiers, tiers: ComposedMerge["tiers"]): Target[] {
  const targets: Target[] = [];
  let last = wanted;
  for (const tier of TIERS) {
    const revision = revisions[tier];
    if (revision === null) continue;
    const composed = tiers[tier].nodes.get(node)!;
    if (revision !== last) targets.push({ node, tier, revision, sent: composed.sent });
    else if (targets.length > 0) targets.at(-1)!.sent = composed.sent;
    last = revision;
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
): Promise<GuardHit[]> {
  const work = guarding<DeclarationBody>({
    nodes: guardNodes(merge, about.beforeBase),
    settings: about.catalogue.mesh.guard,
    descends: about.descends,
    commit: about.commit,
    base: about.base,
    diff: (before, after) => diffBodies(before, after),
  });
  return finishInSlices(work);
}

/** One at a time, so that no two nodes' bodies are held at once. */
function* guardNodes(
  merge: ComposedMerge,
  beforeBase: ((node: string) => DeclarationBody | null) | undefined,
): Generator<GuardNode<DeclarationBody> | UnchangedNode> {
  const changed = new Set(merge.nodes.map(({ node }) => node));
  for (const composed of merge.tiers[2].nodes.values()) {
    const { node } = composed;
    if (!changed.has(node)) {
      yield { node, ...composed.outline };
      continue;
    }
    const before = merge.before.get(node) ?? null;
    // The guard is about what was there; what a new node gets only tells a move from an undoing.
    if (!before && !beforeBase) continue;
    const one: GuardNode<DeclarationBody> = { node, before, after: composed.body };
    yield beforeBase ? { ...one, beforeBase: beforeBase(node) } : one;
  }
}
