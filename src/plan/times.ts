import type { NodeFacts, Plan, PlanFacts } from "./model.ts";

/** How long without a word makes a node silent, in milliseconds. */
export function silentAfter(plan: Plan): number {
  return 3 * plan.heartbeatMs;
}

export function timeOf(iso: string): number {
  return Date.parse(iso);
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

/** Never heard at all, and declared less than three heartbeats ago: a new machine, whose host may still be starting. */
export function awaited(plan: Plan, facts: NodeFacts | undefined, now: number): boolean {
  if (!facts?.declaredAt || facts.seenAt !== null) return false;
  return Math.abs(now - timeOf(facts.declaredAt)) < silentAfter(plan);
}

/** When everybody has had three heartbeats to be heard, or null while the broker cannot be reached (nobody can be judged). */
export function listenedAt(plan: Plan, facts: PlanFacts, now: number): number | null {
  if (facts.connectedAt === null) return null;
  const starts = [connectedSince(plan, facts), plan.clock.steppedAt ? timeOf(plan.clock.steppedAt) : 0];
  // A start that lies in the future is from before the clock went back, which `steppedAt` marks.
  return Math.max(0, ...starts.filter((at) => at - now < silentAfter(plan))) + silentAfter(plan);
}

/** When the controller connected, in milliseconds; 0 where that is not known by the clock of now. */
export function connectedSince(plan: Plan, { connectedAt }: PlanFacts): number {
  return connectedAt === null || connectedAt === plan.clock.stale ? 0 : timeOf(connectedAt);
}
