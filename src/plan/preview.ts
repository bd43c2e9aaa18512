import type { Catalogue, Problem } from "../catalogue/catalogue.ts";
import { type ComposedNode, type Composer, createComposer, OFFLINE_FACTS } from "../composition/compose.ts";
import { type Change, diffBodies } from "../composition/diff.ts";
import { type PreviewDocument, previewTiers } from "../composition/preview.ts";
import { sameRecord } from "../composition/resolve.ts";
import type { CompositionFacts, MeshView, SentView } from "../composition/view.ts";
import type { DeclarationBody } from "../declaration/schema.ts";
import type { GuardNode, UnchangedNode } from "./guard.ts";
import type { GuardHit } from "./model.ts";
import { composeTiers, type SentState } from "./tiers.ts";

/** What nodes hold before the merge. `node` gives revision and body of one; absent: it was never sent anything. */
export interface PreviewBase extends SentState {
  commit: string | null;
  node(name: string): { revision: string; readonly body: DeclarationBody } | undefined;
}

/** Is given each node of the new commit: what it holds and what the last tier gives it, or the outline of what stays. */
export type PreviewGuard = (
  nodes: Array<GuardNode<DeclarationBody> | UnchangedNode>,
  diff: (before: DeclarationBody | null, after: DeclarationBody) => Change[],
) => GuardHit[];

/**
 * What a merge of `next` would do: pure, offline. Against another commit, `base` is `sentAs(baseCatalogue)`; against what
 * runs, it is what the inventory kept. A catalogue with problems gives a document without tiers.
 */
export function preview(at: {
  next: Catalogue;
  base: PreviewBase;
  facts?: CompositionFacts;
  guard: PreviewGuard;
  confirmLine: (hits: readonly GuardHit[]) => string | null;
  composer?: Composer;
}): PreviewDocument {
  const { next, base, guard, confirmLine, facts = OFFLINE_FACTS, composer = createComposer() } = at;
  const document = { from: base.commit, to: next.commit };
  const { view, problems } = composer.resolve(next);
  if (problems.length > 0) return refused(document, problems);
  const composed = composeTiers(composer, view, base, facts);
  if (composed.problems.length > 0) return refused(document, composed.problems);
  const final = composed.tiers[2].nodes;
  const nodes = [...final.values()].map((node) => {
    const held = base.node(node.node);
    if (held?.revision === node.revision) return { node: node.node, ...node.outline };
    return { node: node.node, before: held?.body ?? null, after: node.body };
  });
  const hits = guard(nodes, diffBodies);
  return {
    ...document,
    tiers: previewTiers(
      { get: (name) => base.node(name) },
      composed.tiers.map((tier) => tier.nodes),
      changedModules(view, base.sent),
    ),
    guard: hits.map(({ rule, detail }) => ({ rule, detail })),
    confirm: confirmLine(hits),
    problems: [],
  };
}

function refused(document: { from: string | null; to: string | null }, problems: Problem[]): PreviewDocument {
  return { ...document, tiers: [], guard: [], confirm: null, problems };
}

/** A catalogue as if every node had been sent it. Problems: it does not compose, and nothing was sent. */
export function sentAs(
  catalogue: Catalogue,
  facts: CompositionFacts = OFFLINE_FACTS,
  composer: Composer = createComposer(),
): PreviewBase & { problems: Problem[]; ports: CompositionFacts["ports"] } {
  const { view, problems } = composer.resolve(catalogue);
  const composition = composer.compose(view, facts);
  const all = [...problems, ...composition.problems];
  const nodes: ReadonlyMap<string, ComposedNode> = all.length > 0 ? new Map() : composition.nodes;
  const versions = new Map([...catalogue.modules.values()].map((version) => [version.tree, version]));
  const sent = new Map<string, SentView>([...nodes].map(([name, node]) => [name, node.sent]));
  return {
    commit: catalogue.commit,
    sent,
    versions: (tree) => versions.get(tree),
    lastBodies: { get: (name) => nodes.get(name)?.body },
    node: (name) => nodes.get(name),
    problems: all,
    ports: composition.ports,
  };
}

/** Names of the modules that each tier brings or changes; those that leave a node are tier 2's. */
function changedModules(view: MeshView, sent: SentState["sent"]): string[][] {
  const tiers = [new Set<string>(), new Set<string>(), new Set<string>()] as const;
  for (const [name, node] of view.nodes) {
    const before = new Map(sent.get(name)?.modules.map((module) => [module.name, module]));
    for (const [module, { version, settings }] of node.modules) {
      const old = before.get(module);
      const same = old?.tree === version.tree && sameRecord(old.settings, settings);
      if (!same) tiers[version.manifest.tier].add(module);
      before.delete(module);
    }
    for (const module of before.keys()) tiers[2].add(module);
  }
  return tiers.map((names) => [...names].sort());
}
