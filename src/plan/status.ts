import { currentTier } from "./decide.ts";
import type { Plan, Tier } from "./model.ts";

/** The document of `mesh plan ID --json`. */
export function planDocument(plan: Plan) {
  const { id, commit, base, state, reason, createdAt, finishedAt } = plan;
  return { id, commit, base, state, reason, createdAt, finishedAt, tiers: plan.tiers.map(tierDocument) };
}
export type PlanDocument = ReturnType<typeof planDocument>;

function tierDocument(tier: Tier) {
  return {
    tier: tier.tier,
    state: tier.state,
    builds: tier.builds.map(({ module, bundle, system, state, digest, ms, error }) => {
      return { module, bundle, system, state, digest, ms, error };
    }),
    nodes: tier.nodes.map(({ node, batch, state, revision, sentAt, appliedAt, error }) => {
      return { node, batch, state, revision, sentAt, appliedAt, error };
    }),
  };
}

/** The `plan` of `mesh status --json`; `tier` is the one being worked, or the last. */
export function planSummary(plan: Plan) {
  const tier = currentTier(plan)?.tier ?? 2;
  return { id: plan.id, commit: plan.commit, state: plan.state, tier, reason: plan.reason };
}

/** A tier in one line, for people: "497 of 500 applied, 2 offline, 1 failed". */
export function tally(tier: Tier): string {
  const count = (state: string) => tier.nodes.filter((node) => node.state === state).length;
  const others = (["sent", "pending", "offline", "failed", "skipped"] as const)
    .map((state) => ({ state, n: count(state) }))
    .filter(({ n }) => n > 0)
    .map(({ state, n }) => `${n} ${state}`);
  return [`${count("applied")} of ${tier.nodes.length} applied`, ...others].join(", ");
}
