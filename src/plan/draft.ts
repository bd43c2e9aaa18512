import type { Decision, NodeFacts, Plan, PlanBuild, PlanFacts, PlanNode, Tier, TierNumber } from "./model.ts";
import { heard } from "./times.ts";

/** One node in one tier of the draft, with all its tiers beside it (ascending). */
export interface Entry {
  node: PlanNode;
  tier: Tier;
  all: Entry[];
  facts: NodeFacts | undefined;
  /** Heard within three heartbeats. */
  heard: boolean;
}

/** The copy of a plan that one run of decide works on. Nothing outside it is changed. */
export interface Draft {
  plan: Plan;
  facts: PlanFacts;
  now: number;
  /** `now` as ISO. */
  at: string;
  /** When everybody has been listened to (`listenedAt`); set once the clock is steadied. */
  listened: number | null;
  entries: Record<TierNumber, Entry[]>;
  byNode: Map<string, Entry[]>;
  release: Map<string, Decision["release"][number]>;
  asks: PlanBuild[];
}

export function draftOf(plan: Plan, facts: PlanFacts, now: number): Draft {
  const copy = copyPlan(plan);
  const draft: Draft = {
    plan: copy,
    facts,
    now,
    at: new Date(now).toISOString(),
    listened: null,
    entries: { 0: [], 1: [], 2: [] },
    byNode: new Map(),
    release: new Map(),
    asks: [],
  };
  for (const tier of copy.tiers) {
    for (const node of tier.nodes) {
      const all = draft.byNode.get(node.node) ?? [];
      const known = facts.nodes.get(node.node);
      if (node.stale && known?.seenAt !== node.stale) node.stale = null;
      const fresh = !node.stale && heard(plan, known, now);
      const entry = { node, tier, all, facts: known, heard: fresh };
      all.push(entry);
      draft.byNode.set(node.node, all);
      draft.entries[tier.tier].push(entry);
    }
  }
  return draft;
}

/** Keys that this release does not know are kept, at every level. */
export function copyPlan(plan: Plan): Plan {
  const tiers = plan.tiers.map((tier) => ({
    ...tier,
    builds: tier.builds.map((build) => ({ ...build })),
    nodes: tier.nodes.map((node) => ({ ...node })),
  }));
  return {
    ...plan,
    tiers: tiers as Plan["tiers"],
    clock: { ...plan.clock },
    guard: { ...plan.guard },
  };
}

/** The highest tier that this node was sent. */
export function latestReleased(entry: Entry): Entry | undefined {
  return entry.all.findLast((other) => other.node.released);
}

/** Wants this tier's declaration for the node, under a sequence above every one that was wanted or reported. */
export function release(draft: Draft, entry: Entry, batch: number): void {
  const { node, tier, facts } = entry;
  const pending = draft.release.get(node.node);
  const wanted = pending?.revision ?? facts?.wantedRevision ?? null;
  const sequence = pending?.sequence ?? facts?.wantedSequence ?? 0;
  const again = node.resend;
  Object.assign(node, { released: true, resend: false, batch, sentAt: node.sentAt ?? stamp(draft) });
  if (wanted === node.revision && sequence > 0 && !again) {
    node.sequence = sequence;
    return;
  }
  const known = entry.all.map((other) => other.node.sequence ?? 0);
  node.sequence = Math.max(sequence, facts?.reported?.sequence ?? 0, ...known) + 1;
  draft.release.set(node.node, {
    node: node.node,
    tier: tier.tier,
    revision: node.revision,
    sequence: node.sequence,
  });
}

export function stamp(draft: Draft): string {
  return draft.at;
}
