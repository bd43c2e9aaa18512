import type { Draft, Entry } from "./draft.ts";
import type { GuardHit, Plan, PlanBuild } from "./model.ts";

const NAMED = 3;

/** "web-1, web-2, web-3 and 9 more" */
export function few(names: readonly string[], named = NAMED): string {
  if (names.length <= named) return names.join(", ");
  return `${names.slice(0, named).join(", ")} and ${names.length - named} more`;
}

function skipCommand(plan: Plan, nodes: readonly string[]): string {
  return `mesh plans skip ${plan.id} ${nodes[0] ?? "NODE"}`;
}

export const reasons = {
  guard: (plan: Plan, hits: readonly GuardHit[]) =>
    `the guard asks for a yes: ${few(hits.map((hit) => hit.detail))}; let it go with: mesh plans confirm ${plan.id}`,

  frozen: (frozen: { reason: string; by: string }) =>
    `the mesh is frozen by ${frozen.by}${frozen.reason ? ` (${frozen.reason})` : ""}; let it go with: mesh unfreeze`,

  stopped: (plan: Plan, by: string) => `stopped by ${by}; go on with: mesh plans retry ${plan.id}`,

  failed: (plan: Plan, failed: readonly Entry[]) => {
    const nodes = failed.map(({ node }) => node.node);
    const first = failed[0];
    const cause = first ? `: ${first.node.node}: ${first.node.error ?? "failed"}` : "";
    return (
      `${failed.length} failed in tier ${first?.tier.tier ?? 0} (at most ${plan.rollout.maxFailures} may)${cause}` +
      `${nodes.length > 1 ? `; also ${few(nodes.slice(1))}` : ""}` +
      `; goes on when they report applied, or with: mesh plans retry ${plan.id}, ${skipCommand(plan, nodes)}`
    );
  },

  buildFailed: (plan: Plan, failed: readonly PlanBuild[]) => {
    const first = failed[0]!;
    return (
      `the build of ${first.module}.${first.bundle} failed: ${first.error ?? "no log"}` +
      `${failed.length > 1 ? ` (and ${failed.length - 1} more)` : ""}; ask again with: mesh plans retry ${plan.id}`
    );
  },

  noBuilder: (builds: readonly PlanBuild[]) =>
    `no builder is there for ${few(builds.map((build) => `${build.module}.${build.bundle}`))}; ` +
    "goes on when one answers: mesh-builder run",

  silent: (plan: Plan, silent: readonly string[], of: number) =>
    `${silent.length} of ${of} silent (${few(silent)}); goes on when they answer, or with: ${skipCommand(plan, silent)}`,

  notApplied: (plan: Plan, tier: number, failed: readonly string[], silent: readonly string[], of: number) =>
    silent.length > 0
      ? `no node has applied tier ${tier}: ${reasons.silent(plan, silent, of)}`
      : `no node has applied tier ${tier}: ${failed.length} of ${of} failed (${few(failed)}); ` +
        `goes on when one reports applied, or with: mesh plans retry ${plan.id}, ${skipCommand(plan, failed)}`,

  listening: (draft: Draft, names: readonly string[]) =>
    draft.facts.connectedAt === null
      ? "the broker cannot be reached; goes on when it answers"
      : `listening for ${few(names)}`,

  soaking: (until: number) => `soaking until ${new Date(until).toISOString()}`,
};
