import type { MeshFile } from "../catalogue/schema/mesh.ts";
import type { GuardHit, Plan, PlanBuild, PlanNode, Tier, TierNumber } from "./model.ts";
import { confirms, parseConfirmTrailer } from "./trailer.ts";

type Revisions = readonly [string | null, string | null, string | null];

/** What composition says of one node. */
export interface NodeTiers {
  node: string;
  /** The revision that the inventory wants now (null: never sent), and that M0, M1 and M2 were composed on. */
  wanted: string | null;
  /** What M0, M1 and M2 give the node; null: nothing is composed for it. */
  revisions: Revisions;
  /** Its newest report says failed, or it is refused or silent-failed by an unfinished plan: it does not count against maxFailures. */
  failing: boolean;
}

export type NewBuild = Pick<PlanBuild, "module" | "bundle" | "system" | "key">;

export interface NewPlan {
  id: number;
  commit: string;
  /** First line of the commit's message. */
  subject: string;
  /** The whole message, for `Mesh-Confirm:`. */
  message: string;
  base: string | null;
  nodes: readonly NodeTiers[];
  builds?: readonly [readonly NewBuild[], readonly NewBuild[], readonly NewBuild[]];
  rollout: MeshFile["rollout"];
  /** mesh.json's host.heartbeat, milliseconds. */
  heartbeatMs: number;
  guard: readonly GuardHit[];
}

/**
 * The plan of a merge, not worked yet. A tier lists the nodes whose revision it changes; one that changes nothing is skipped, and
 * a merge that changes nothing is done at once (there is nothing a guard could hold).
 * @param now wall clock, milliseconds since 1970
 */
export function newPlan(from: NewPlan, now: number): Plan {
  const at = new Date(now).toISOString();
  const tiers = ([0, 1, 2] as const).map((t) => newTier(t, from)) as Plan["tiers"];
  const idle = tiers.every((tier) => tier.state === "skipped");
  const trusted = confirms(parseConfirmTrailer(from.message), from.guard);
  return {
    id: from.id,
    commit: from.commit,
    subject: from.subject,
    base: from.base,
    state: idle ? "done" : "running",
    reason: null,
    createdAt: at,
    finishedAt: idle ? at : null,
    tiers,
    rollout: from.rollout,
    heartbeatMs: from.heartbeatMs,
    guard: {
      hits: idle ? [] : [...from.guard],
      confirmed: trusted && from.guard.length > 0 && !idle ? { by: "the commit's Mesh-Confirm", at } : null,
    },
    stopped: null,
    supersededBy: null,
    clock: { workedAt: at, steppedAt: null, told: null },
  };
}

function newTier(tier: TierNumber, from: NewPlan): Tier {
  const nodes = from.nodes
    .filter((node) => touches(node, tier))
    .map((node) => newNode(node.node, node.revisions[tier]!, node.failing))
    .sort((a, b) => (a.node < b.node ? -1 : 1));
  const builds = (from.builds?.[tier] ?? []).map(newBuild);
  const state = nodes.length === 0 && builds.length === 0 ? "skipped" : "pending";
  return { tier, state, builds, nodes, batch: 0, batchDoneAt: null };
}

function touches({ wanted, revisions }: NodeTiers, tier: TierNumber): boolean {
  const revision = revisions[tier];
  if (revision === null) return false;
  const before = revisions.slice(0, tier).findLast((earlier) => earlier !== null) ?? wanted;
  return revision !== before;
}

function newNode(node: string, revision: string, failedBefore: boolean): PlanNode {
  return {
    node,
    batch: null,
    state: "pending",
    revision,
    sentAt: null,
    appliedAt: null,
    progressAt: null,
    error: null,
    failedBefore,
    released: false,
    sequence: null,
    progress: null,
    skip: false,
    resend: false,
  };
}

function newBuild({ module, bundle, system, key }: NewBuild): PlanBuild {
  return {
    module,
    bundle,
    system,
    key,
    state: "waiting",
    digest: null,
    ms: null,
    error: null,
    asked: false,
  };
}
