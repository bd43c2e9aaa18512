import type { Plan, PlanFacts, PlanNode, Tier } from "./model.ts";
import { connectedSince, listenedAt, silentAfter, timeOf } from "./times.ts";

/**
 * When decide would say something else if nothing but time passed: a soak ends, a node times out or becomes silent, everybody
 * was listened to. Milliseconds since 1970, above `now`; null: only a message, a command or a new merge moves the plan.
 */
export function nextWakeAt(plan: Plan, facts: PlanFacts, now: number): number | null {
  if (plan.state === "superseded" || facts.newerPlan !== null) return null;
  const listened = listenedAt(plan, facts, now);
  if (listened === null) return null;
  const times = plan.tiers.flatMap((tier) => [
    ...soakEnd(plan, tier),
    ...tier.nodes.flatMap((node) => nodeTimes(plan, facts, now, tier, node, listened)),
  ]);
  const next = times.filter((at) => at > now);
  return next.length === 0 ? null : next.reduce((a, b) => Math.min(a, b));
}

function soakEnd(plan: Plan, tier: Tier): number[] {
  if (tier.state !== "rolling-out" || tier.batchDoneAt === null) return [];
  return [timeOf(tier.batchDoneAt) + plan.rollout.soak];
}

function nodeTimes(
  plan: Plan,
  facts: PlanFacts,
  now: number,
  tier: Tier,
  node: PlanNode,
  listened: number,
): number[] {
  const known = facts.nodes.get(node.node);
  const seenAt = known?.seenAt === node.stale ? null : known?.seenAt;
  const lastSign = seenAt ?? known?.declaredAt ?? null;
  const quietAt = lastSign === null ? 0 : timeOf(lastSign) + silentAfter(plan);
  // A `seenAt` from before the clock went back says nothing: everybody is listened to anew.
  const quiet = quietAt - now < 2 * silentAfter(plan) ? Math.max(listened, quietAt) : listened;
  const progress = node.progressAt === null ? 0 : timeOf(node.progressAt);
  if (node.state === "sent") {
    const connected = connectedSince(plan, facts);
    return [
      Math.max(progress, connected) + plan.rollout.timeout,
      Math.max(quiet, progress + silentAfter(plan)),
    ];
  }
  return tier.state === "rolling-out" && node.state !== "skipped" ? [quiet] : [];
}
