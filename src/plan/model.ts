import type { MeshFile } from "../catalogue/schema/mesh.ts";

export type PlanState = "waiting" | "running" | "halted" | "stopped" | "superseded" | "done";
export type TierState = "pending" | "building" | "rolling-out" | "done" | "skipped" | "halted";
export type NodeState = "pending" | "sent" | "applied" | "failed" | "offline" | "skipped";
export type BuildState = "waiting" | "building" | "done" | "cached" | "failed";
export type TierNumber = 0 | 1 | 2;

/** One node within a tier. Times are ISO 8601 UTC; `revision` is what this tier gives the node; `batch` counts from 1, null before batches are drawn. */
export interface PlanNode {
  node: string;
  batch: number | null;
  state: NodeState;
  revision: string;
  sentAt: string | null;
  appliedAt: string | null;
  /** Last sign of progress: sent, or a report of this sequence that differed from the one before. Rollout `timeout` counts from it. */
  progressAt: string | null;
  error: string | null;
  /** Failing before this plan: does not count against `maxFailures`. */
  failedBefore: boolean;
  /** Released by decide: its declaration of this tier is wanted (it may still be offline). */
  released: boolean;
  /** The sequence it was released under; a report below it is not about this tier. Null: not released. */
  sequence: number | null;
  /** `reported.progress` when progress was last seen. */
  progress: string | null;
  /** `plans skip`. */
  skip: boolean;
  /** The `seenAt` that lay in the future when the clock went back: it says nothing until another is there. */
  stale?: string | null;
  /** `plans retry`: decide sends it again, under a new sequence. */
  resend: boolean;
}

export interface PlanBuild {
  module: string;
  bundle: string;
  system: string;
  key: string;
  state: BuildState;
  digest: string | null;
  ms: number | null;
  error: string | null;
  /** Asked by this plan. A fact from before the ask counts only when it is `done` (then `cached`). */
  asked: boolean;
}

export interface Tier {
  tier: TierNumber;
  state: TierState;
  builds: PlanBuild[];
  nodes: PlanNode[];
  /** Highest batch released so far (0: none), and when it was wholly applied (for `soak`). */
  batch: number;
  batchDoneAt: string | null;
}

export interface GuardHit {
  rule: "emptied" | "removals" | "restarts" | "history";
  detail: string;
  /** What confirms it in a trailer: "emptied web-1", "removals 34", "restarts 12", "history". */
  item: string;
}

/** A merge's plan. Saved whole; unknown keys that a newer release wrote are kept when saved. */
export interface Plan {
  id: number;
  commit: string;
  subject: string;
  base: string | null;
  state: PlanState;
  /** `waiting` and `halted`: the reason and the command that lets it go. */
  reason: string | null;
  createdAt: string;
  finishedAt: string | null;
  tiers: [Tier, Tier, Tier];
  rollout: MeshFile["rollout"];
  heartbeatMs: number;
  guard: { hits: GuardHit[]; confirmed: { by: string; at: string } | null };
  /** `plans stop`: who and when. Cleared by `plans retry`. */
  stopped: { by: string; at: string } | null;
  supersededBy: number | null;
  /**
   * When decide last ran (to within 15 s); when the clock last stepped, or nobody worked the plan for long: hosts are listened
   * to anew from there; the last step that the controller told of; and a `connectedAt` that lay in the future when the clock
   * went back, and so says nothing.
   */
  clock: { workedAt: string; steppedAt: string | null; told: string | null; stale?: string | null };
}

/** What decide knows of one node, from the inventory. */
export interface NodeFacts {
  node: string;
  /** Last heard (heartbeat or report), ISO, null: never. */
  seenAt: string | null;
  /** Since when a commit declares it (ISO): a new machine has three heartbeats from there to be heard at all. Left out: long ago. */
  declaredAt?: string | null;
  frozen: boolean;
  observed: boolean;
  /** A skip asked by `plans skip ID NODE`. */
  skipped: boolean;
  /** The sequence (0: never sent) and revision wanted by the inventory, and those of the newest report. */
  wantedSequence: number;
  wantedRevision: string | null;
  reported: {
    sequence: number;
    revision: string | null;
    outcome: "none" | "applying" | "waiting" | "applied" | "failed" | "observed" | "refused";
    error: string | null;
    /** Changes with each report that shows progress (host start and report number of the last differing one). */
    progress: string;
  } | null;
}

export interface PlanFacts {
  nodes: ReadonlyMap<string, NodeFacts>;
  /** null or the reason of a freeze of the whole mesh. */
  frozen: { reason: string; by: string } | null;
  /** Id of a newer plan, if there is one. */
  newerPlan: number | null;
  /** When the active controller itself connected to the broker (ISO), null: it is not connected. Nobody is offline before three heartbeats after it. */
  connectedAt: string | null;
  /** When the controller last saw its wall clock step (`watchSteps`), ISO; null or left out: never since it started. */
  steppedAt?: string | null;
  builds: ReadonlyMap<
    string,
    { state: BuildState; digest: string | null; ms: number | null; error: string | null }
  >;
  builderThere: boolean;
}

/**
 * What decide asks of work, in the transaction that saves `plan`: set these declarations wanted (at most one per node, under
 * exactly this sequence, which is above every one wanted or reported before), and set these builds to `waiting` and ask them.
 */
export interface Decision {
  plan: Plan;
  release: Array<{ node: string; tier: TierNumber; revision: string; sequence: number }>;
  asks: PlanBuild[];
}
