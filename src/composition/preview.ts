import type { Problem } from "../catalogue/catalogue.ts";
import type { DeclarationBody } from "../declaration/schema.ts";
import { type Change, diffBodies } from "./diff.ts";
import { compareText } from "./issues.ts";

/** One tier of the document of `mesh preview --json`. */
export interface PreviewTier {
  tier: number;
  /** Modules that this tier brings, changes or takes away. */
  modules: string[];
  builds: never[];
  nodes: Array<{ node: string; changes: Change[] }>;
}

/** The document of `mesh preview --json`. `confirm` is the trailer that lets the merge through the guard, null when it asks nothing. */
export interface PreviewDocument {
  from: string | null;
  to: string | null;
  tiers: PreviewTier[];
  guard: Array<{ rule: string; detail: string }>;
  confirm: string | null;
  problems: Problem[];
}

/** A declaration as a preview needs it: its body is asked for only where revisions differ. */
export interface PreviewNode {
  revision: string;
  readonly body: DeclarationBody;
}

/**
 * What a merge would do, tier by tier.
 * @param before what nodes hold now; a node that holds nothing is absent
 * @param tiers what the three tiers send
 * @param modules names of the modules that each tier changes
 */
export function previewTiers(
  before: { get(node: string): PreviewNode | undefined },
  tiers: ReadonlyArray<ReadonlyMap<string, PreviewNode>>,
  modules: ReadonlyArray<readonly string[]>,
): PreviewTier[] {
  const current = new Map<string, PreviewNode | undefined>();
  return tiers.map((nodes, tier) => {
    const touched: PreviewTier["nodes"] = [];
    for (const [node, after] of [...nodes].sort((a, b) => compareText(a[0], b[0]))) {
      const held = current.has(node) ? current.get(node) : before.get(node);
      current.set(node, after);
      if (held?.revision === after.revision) continue;
      const changes = diffBodies(held?.body ?? null, after.body);
      if (changes.length > 0) touched.push({ node, changes });
    }
    return { tier, modules: [...(modules[tier] ?? [])], builds: [], nodes: touched };
  });
}
