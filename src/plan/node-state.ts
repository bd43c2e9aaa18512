import { type Draft, type Entry, latestReleased, stamp } from "./draft.ts";
import type { NodeFacts, NodeState } from "./model.ts";
import { silent } from "./silence.ts";
import { connectedSince, silentAfter, timeOf } from "./times.ts";

/** What a node's state becomes; null: what it was. */
type Verdict = { state: NodeState; error?: string | null } | null;

/** Brings the state of one node in one tier up to what the inventory knows of it. */
export function updateNode(draft: Draft, entry: Entry): void {
  const verdict = judge(draft, entry);
  if (verdict === null) return;
  if (verdict.state === "applied" && entry.node.state !== "applied") markApplied(draft, entry);
  entry.node.state = verdict.state;
  entry.node.error = verdict.error ?? null;
}

function judge(draft: Draft, entry: Entry): Verdict {
  const { facts } = entry;
  const why = skippedBecause(entry);
  if (why !== null) return { state: "skipped", error: why };
  if (facts === undefined) return null;
  return entry.node.released ? judgeReleased(draft, entry, facts) : judgeUnsent(draft, entry);
}

/** Why this node is left out of the tier, or null. A node that already applied stays applied: that is what happened. */
function skippedBecause({ node, facts }: Entry): string | null {
  if (node.state === "applied") return null;
  if (facts === undefined) return "not in the inventory";
  if (facts.observed) return "observed";
  if (node.skip || facts.skipped) return "skipped by request";
  return facts.frozen ? "frozen" : null;
}

function judgeUnsent(draft: Draft, entry: Entry): Verdict {
  // Once the tier is done this is a node that a freeze held back: it stays skipped until it is sent.
  if (entry.tier.state === "done") return null;
  return { state: silent(draft, entry) ? "offline" : "pending" };
}

function judgeReleased(draft: Draft, entry: Entry, facts: NodeFacts): Verdict {
  const { node } = entry;
  if (facts.frozen) return null;
  const said = whatItSays(entry, facts);
  if (said === "observed") return { state: "skipped", error: "observed" };
  if (said === "failed")
    return { state: "failed", error: facts.reported?.error ?? "the host says it failed" };
  if (said === "applied" || node.state === "applied") return judgeApplied(draft, entry, facts, said);
  // A failure is taken back only by `applied`, so that a plan does not flicker between halted and running.
  return node.state === "failed" ? null : judgeUnderWay(draft, entry, facts);
}

/** What the newest report says of this tier on this node: a later tier's declaration holds this one's too. */
function whatItSays(entry: Entry, facts: NodeFacts): "applied" | "failed" | "observed" | null {
  const { reported } = facts;
  const latest = latestReleased(entry);
  if (reported === null || latest === undefined) return null;
  const about = entry.all.some(
    ({ node, tier }) =>
      tier.tier >= entry.tier.tier &&
      node.released &&
      node.revision === reported.revision &&
      reported.sequence >= (node.sequence ?? 0),
  );
  const refused = reported.outcome === "refused" && reported.sequence >= (latest.node.sequence ?? 0);
  if (!about && !refused) return null;
  if (reported.outcome === "applied" || reported.outcome === "observed") return reported.outcome;
  const failed = refused || reported.outcome === "failed";
  return failed && (latest === entry || entry.node.state !== "applied") ? "failed" : null;
}

/**
 * Until its batch is through, a node that applied and then went silent is a failure: that is what the batch, and `soak`,
 * are there to show.
 */
function judgeApplied(draft: Draft, entry: Entry, facts: NodeFacts, said: "applied" | null): Verdict {
  const { node, tier } = entry;
  if (node.state === "failed" && !entry.heard) return null;
  const current = tier.state !== "done" && node.batch === tier.batch;
  if (current && silent(draft, entry))
    return { state: "failed", error: silence(facts, "after it had applied") };
  return said === "applied" ? { state: "applied" } : null;
}

function markApplied(draft: Draft, entry: Entry): void {
  entry.node.appliedAt = stamp(draft);
  // The soak counts from the last node that applied, also where the plan was stopped or frozen meanwhile.
  entry.tier.batchDoneAt = null;
  // It works now: from here on a failure is this plan's doing.
  for (const other of entry.all) other.node.failedBefore = false;
}

function judgeUnderWay(draft: Draft, entry: Entry, facts: NodeFacts): Verdict {
  const { node } = entry;
  const arrived = node.state !== "sent";
  // Only the end of a tier lets a node through to it that is not there; any other was heard when it was sent.
  if (arrived && !entry.heard && entry.tier.state === "done") return { state: "offline" };
  const { reported } = facts;
  const about = reported !== null && reported.sequence >= (node.sequence ?? 0);
  const moved = about && reported.progress !== node.progress;
  if (moved) node.progress = reported.progress;
  if (arrived || moved) node.progressAt = stamp(draft);
  const late = lateness(draft, entry, facts, timeOf(node.progressAt ?? stamp(draft)));
  return late === null ? { state: "sent" } : { state: "failed", error: late };
}

/** Why a node that was sent has had its time, or null. While nothing can be heard, nothing is late. */
function lateness(draft: Draft, entry: Entry, facts: NodeFacts, progressAt: number): string | null {
  const { now, plan } = draft;
  if (draft.facts.connectedAt === null) return null;
  const connectedAt = connectedSince(plan, draft.facts);
  const since = connectedAt > now ? progressAt : Math.max(progressAt, connectedAt);
  if (silent(draft, entry) && now - progressAt >= silentAfter(plan))
    return silence(facts, "after it was sent");
  const { timeout } = plan.rollout;
  return now - since >= timeout ? `no progress for ${duration(timeout)}` : null;
}

function silence(facts: NodeFacts, when: string): string {
  return facts.seenAt === null ? `never heard ${when}` : `silent since ${facts.seenAt}, ${when}`;
}

function duration(ms: number): string {
  return ms >= 60_000 && ms % 60_000 === 0 ? `${ms / 60_000} min` : `${ms / 1000} s`;
}
