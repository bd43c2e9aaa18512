import type { Draft } from "./draft.ts";
import type { NodeFacts, Plan, PlanFacts, Tier } from "./model.ts";

const GAP_MS = 90_000;
const WORKED_EVERY_MS = 15_000;
const BACKWARDS_MS = 1_000;

/** How long without a word makes a node silent, in milliseconds. */
export function silentAfter(plan: Plan): number {
  return 3 * plan.heartbeatMs;
}

export function timeOf(iso: string): number {
  return Date.parse(iso);
}

/**
 * Makes the draft's own times safe to subtract from. A clock that went back, or a gap longer than the timer leaves (the clock
 * went forward, or nobody worked the plan), would make waiting nodes look silent, timed out or soaked all at once: from
 * such a point everybody is listened to anew.
 */
export function steadyClock(draft: Draft): void {
  const { plan, now } = draft;
  const { clock } = plan;
  const told = draft.facts.steppedAt ?? null;
  const news = told !== null && told !== clock.told;
  const since = now - timeOf(clock.workedAt);
  const seen = since < -BACKWARDS_MS || since > Math.max(GAP_MS, silentAfter(plan)) + WORKED_EVERY_MS;
  const at = new Date(now).toISOString();
  if (news) Object.assign(clock, { told, steppedAt: told });
  if (seen) clock.steppedAt = at;
  if (seen || since >= WORKED_EVERY_MS) clock.workedAt = at;
  for (const tier of plan.tiers) restart(tier, news || seen, now);
}

/** A step starts soak and timeouts anew; what lies in the future is from before one. */
function restart(tier: Tier, stepped: boolean, now: number): void {
  const at = new Date(now).toISOString();
  if (tier.batchDoneAt !== null && (stepped || timeOf(tier.batchDoneAt) > now)) tier.batchDoneAt = at;
  for (const node of tier.nodes) {
    if (node.progressAt === null) continue;
    if ((stepped && node.state === "sent") || timeOf(node.progressAt) > now) node.progressAt = at;
  }
}

/**
 * Heard within three heartbeats. Distance, not age: a `seenAt` far in the future is from before the clock went back and says
 * nothing of now.
 */
export function heard(plan: Plan, facts: NodeFacts | undefined, now: number): boolean {
  return (
    facts !== undefined && facts.seenAt !== null && Math.abs(now - timeOf(facts.seenAt)) < silentAfter(plan)
  );
}

/** When everybody has had three heartbeats to be heard, or null while the broker cannot be reached (nobody can be judged). */
export function listenedAt(plan: Plan, facts: PlanFacts, now: number): number | null {
  if (facts.connectedAt === null) return null;
  const starts = [timeOf(facts.connectedAt), plan.clock.steppedAt ? timeOf(plan.clock.steppedAt) : 0];
  // A start that lies in the future is from before the clock went back, which `steppedAt` marks.
  return Math.max(0, ...starts.filter((at) => at - now < silentAfter(plan))) + silentAfter(plan);
}

/** Not heard for three heartbeats, and listened to for that long. Neither `heard` nor silent: not known yet. */
export function silent(draft: Draft, facts: NodeFacts | undefined): boolean {
  const ready = listenedAt(draft.plan, draft.facts, draft.now);
  return ready !== null && draft.now >= ready && !heard(draft.plan, facts, draft.now);
}
