import { advanceBuilds } from "./builds.ts";
import { type Draft, draftOf, type Entry, latestReleased, release, stamp } from "./draft.ts";
import type { Decision, Plan, PlanFacts, Tier } from "./model.ts";
import { updateNode } from "./node-state.ts";
import { reasons } from "./reasons.ts";
import { advanceRollout, type Outcome, tooManyFailures } from "./rollout.ts";
import { steadyClock } from "./silence.ts";

/**
 * The whole state machine of a plan (DESIGN: plan), pure: reads the plan as saved and the inventory's facts of now, and returns
 * the plan as it is now with what it releases and asks. Run again with the same input it asks for nothing more.
 * @param now wall clock, milliseconds since 1970; may have stepped since the last run
 */
export function decide(plan: Plan, facts: PlanFacts, now: number): Decision {
  if (isOver(plan, facts)) return { plan, release: [], asks: [] };
  const draft = draftOf(plan, facts, now);
  if (facts.newerPlan !== null) supersede(draft, facts.newerPlan);
  else if (plan.state === "done") settleLate(draft);
  else work(draft);
  const changed = plan.state !== "done" || draft.release.size > 0 || differs(plan, draft.plan);
  return {
    plan: changed ? draft.plan : plan,
    release: [...draft.release.values()],
    asks: draft.asks,
  };
}

/** Nothing can change this plan any more. */
function isOver(plan: Plan, facts: PlanFacts): boolean {
  return plan.state === "superseded" || (plan.state === "done" && facts.newerPlan !== null);
}

function supersede(draft: Draft, by: number): void {
  draft.plan.state = "superseded";
  draft.plan.supersededBy = by;
  draft.plan.reason = null;
  draft.plan.finishedAt = stamp(draft);
}

function work(draft: Draft): void {
  steadyClock(draft);
  eachEntry(draft, (entry) => updateNode(draft, entry));
  const outcome = holdsAll(draft) ?? advance(draft);
  const { plan } = draft;
  plan.state = outcome.state;
  plan.reason = outcome.state === "done" ? null : outcome.reason;
  if (outcome.state === "done") plan.finishedAt = stamp(draft);
  else if (outcome.state !== "stopped") plan.finishedAt = null;
}

type Whole = Outcome | { state: "stopped"; reason: string };

/** What holds the plan as a whole, whatever its tiers say. */
function holdsAll(draft: Draft): Whole | null {
  const { plan, facts } = draft;
  if (plan.stopped) {
    const tier = currentTier(plan);
    if (tier) tier.state = "halted";
    return { state: "stopped", reason: reasons.stopped(plan, plan.stopped.by) };
  }
  const { hits, confirmed } = plan.guard;
  if (hits.length > 0 && !confirmed) return { state: "waiting", reason: reasons.guard(plan, hits) };
  if (facts.frozen) return { state: "waiting", reason: reasons.frozen(facts.frozen) };
  return null;
}

function advance(draft: Draft): Outcome {
  sendAgain(draft);
  const halted = tooManyFailures(draft);
  if (halted) return halt(currentTier(draft.plan), halted);
  sendHeldBack(draft);
  for (const tier of draft.plan.tiers) {
    if (tier.state === "done" || tier.state === "skipped") continue;
    if (tier.nodes.length === 0 && tier.builds.length === 0) {
      tier.state = "skipped";
      continue;
    }
    const more = draft.plan.tiers.some((later) => later.tier > tier.tier && later.nodes.length > 0);
    const outcome = advanceBuilds(draft, tier) ?? advanceRollout(draft, tier, more);
    if (outcome.state !== "done") return halt(tier, outcome);
  }
  return { state: "done" };
}

function halt(tier: Tier | undefined, outcome: Outcome): Outcome {
  if (tier && outcome.state === "halted") Object.assign(tier, { state: "halted", batchDoneAt: null });
  return outcome;
}

/** `plans retry`: the newest that a node was sent goes out once more, and earlier failures of it no longer count. */
function sendAgain(draft: Draft): void {
  eachEntry(draft, (entry) => {
    if (!entry.node.resend || entry.node.state === "skipped") return;
    const latest = latestReleased(entry)!;
    // It may have come round by itself since it was asked for.
    const again = entry.all.filter(({ node }) => node.resend && node.state === "failed");
    for (const { node } of entry.all) node.resend = false;
    if (again.length === 0) return;
    latest.node.resend = true;
    release(draft, latest, latest.node.batch ?? 1);
    for (const { node } of new Set([...again, latest])) {
      if (node.state === "applied") continue;
      Object.assign(node, { sequence: latest.node.sequence, state: "sent", error: null });
      Object.assign(node, { sentAt: stamp(draft), progressAt: stamp(draft) });
    }
  });
}

/** A node that was frozen while its tier went by gets, once it is let go, what its tiers have let through. */
function sendHeldBack(draft: Draft): void {
  for (const all of draft.byNode.values()) {
    const held = all.filter(isHeldBack);
    const highest = held.at(-1);
    if (!highest || all.some(({ node, tier }) => node.released && tier.tier > highest.tier.tier)) continue;
    release(draft, highest, Math.max(highest.tier.batch, 1));
    for (const entry of held) {
      Object.assign(entry.node, { released: true, batch: Math.max(entry.tier.batch, 1) });
      entry.node.sequence = highest.node.sequence;
      entry.node.sentAt ??= stamp(draft);
      updateNode(draft, entry);
    }
  }
}

function isHeldBack({ node, tier, facts }: Entry): boolean {
  if (tier.state !== "done" || node.released || node.skip || !facts) return false;
  return !facts.frozen && !facts.skipped;
}

/** The ledger of a done plan goes on telling the truth about nodes that were away, failing or frozen when it ended. */
function settleLate(draft: Draft): void {
  steadyClock(draft);
  eachEntry(draft, (entry) => {
    if (entry.node.state !== "applied") updateNode(draft, entry);
  });
  if (draft.facts.frozen) return;
  sendHeldBack(draft);
}

/** The tier that is being worked: the first that is neither done nor skipped. */
export function currentTier(plan: Plan): Tier | undefined {
  return plan.tiers.find(
    (tier) =>
      tier.state !== "done" && tier.state !== "skipped" && (tier.nodes.length > 0 || tier.builds.length > 0),
  );
}

function eachEntry(draft: Draft, visit: (entry: Entry) => void): void {
  for (const tier of draft.plan.tiers) for (const entry of draft.entries[tier.tier]) visit(entry);
}

/** Whether a done plan has something new to save; its clock alone is nothing, unless it times a node that is being sent. */
function differs(before: Plan, after: Plan): boolean {
  return after.tiers.some((tier, t) =>
    tier.nodes.some((node, n) => {
      const old = before.tiers[t]!.nodes[n]!;
      return node.state === "sent" || node.state !== old.state || node.error !== old.error;
    }),
  );
}
