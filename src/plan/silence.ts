import type { Draft, Entry } from "./draft.ts";
import type { Tier, TierNumber } from "./model.ts";
import { awaited, listenedAt, silentAfter, timeOf } from "./times.ts";

const GAP_MS = 90_000;
const WORKED_EVERY_MS = 15_000;
const BACKWARDS_MS = 1_000;

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
  const { at } = draft;
  if (news) Object.assign(clock, { told, steppedAt: told });
  if (seen) clock.steppedAt = at;
  const { connectedAt } = draft.facts;
  if ((seen || news) && connectedAt !== null && timeOf(connectedAt) > now) clock.stale = connectedAt;
  if (seen || since >= WORKED_EVERY_MS) clock.workedAt = at;
  for (const tier of plan.tiers) restart(tier, news || seen, now);
  if (seen || news) forgetFuture(draft);
  draft.listened = listenedAt(plan, draft.facts, now);
}

/** What was seen later than now, was seen before the clock went back: once now gets there, it would look fresh. */
function forgetFuture(draft: Draft): void {
  for (const entry of [0, 1, 2].flatMap((tier) => draft.entries[tier as TierNumber])) {
    const seenAt = entry.facts?.seenAt ?? null;
    if (seenAt === null || timeOf(seenAt) - draft.now <= BACKWARDS_MS) continue;
    entry.node.stale = seenAt;
    entry.heard = false;
  }
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

/** Not heard for three heartbeats, and listened to for that long. Neither `heard` nor silent: not known yet. */
export function silent(draft: Draft, entry: Entry): boolean {
  const listened = draft.listened !== null && draft.now >= draft.listened;
  return listened && !entry.heard && !awaited(draft.plan, entry.facts, draft.now);
}
