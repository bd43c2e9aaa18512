import { above, drawBatches } from "./batches.ts";
import { type Draft, type Entry, release, stamp } from "./draft.ts";
import type { Tier } from "./model.ts";
import { updateNode } from "./node-state.ts";
import { reasons } from "./reasons.ts";
import { silent } from "./silence.ts";
import { timeOf } from "./times.ts";

const SILENT_AT_LEAST = 5;

/** Where one tier stands after as much of it as may go now went. `done`: the next tier may start. */
export type Outcome =
  | { state: "done" }
  | { state: "running"; reason: string | null }
  | { state: "waiting" | "halted"; reason: string };

/** Sends the tier's batches for as long as nothing holds them. `more`: a later tier touches something. */
export function advanceRollout(draft: Draft, tier: Tier, more: boolean): Outcome {
  tier.state = "rolling-out";
  const entries = draft.entries[tier.tier];
  for (const entry of entries) showObserved(draft, entry);
  for (;;) {
    const held = holds(draft, tier) ?? soaks(draft, tier, more);
    if (held) return held;
    const next = candidates(entries);
    if (next.length > 0) {
      releaseBatch(draft, tier, next);
      continue;
    }
    const unknown = entries.filter(({ node }) => node.state === "pending");
    if (unknown.length > 0) return { state: "running", reason: reasons.listening(draft, names(unknown)) };
    return finish(draft, tier);
  }
}

/** The nodes that count against `maxFailures`, one entry each, over all tiers. */
export function failures(draft: Draft): Entry[] {
  const failed: Entry[] = [];
  for (const all of draft.byNode.values()) {
    const entry = all.findLast(({ node }) => node.state === "failed" && !node.failedBefore);
    if (entry) failed.push(entry);
  }
  return failed;
}

export function tooManyFailures(draft: Draft): Outcome | null {
  const failed = failures(draft);
  if (failed.length <= draft.plan.rollout.maxFailures) return null;
  return { state: "halted", reason: reasons.failed(draft.plan, failed) };
}

/** What keeps the next batch, and the end of the tier, back; null when the batches so far are through. */
function holds(draft: Draft, tier: Tier): Outcome | null {
  const entries = draft.entries[tier.tier].filter((entry) => isWatched(entry));
  const held = tooManyFailures(draft) ?? underWay(draft, tier, entries) ?? silence(draft, tier, entries);
  if (held) tier.batchDoneAt = null;
  return held;
}

/** Whose silence counts. One that left the inventory, or was frozen, after it had applied is not asked any more. */
function isWatched({ node, facts }: Entry): boolean {
  return node.state !== "skipped" && facts !== undefined && !facts.frozen;
}

function underWay(draft: Draft, tier: Tier, entries: readonly Entry[]): Outcome | null {
  if (draft.facts.connectedAt === null && entries.length > 0) return listening(draft, entries);
  // Also one of an earlier tier, that returned or was sent again: its failure would halt the plan.
  if (earlier(draft, tier).some(({ node }) => node.state === "sent"))
    return { state: "running", reason: null };
  // Its word that it applied is older than we can judge: a controller that just started must not take it for lasting.
  const unproven = entries.filter(
    (entry) => entry.node.state === "applied" && entry.node.batch === tier.batch && !entry.heard,
  );
  return unproven.length > 0 ? listening(draft, unproven) : null;
}

/** The entries of this tier and of those before it. */
function earlier(draft: Draft, tier: Tier): Entry[] {
  return ([0, 1, 2] as const).filter((t) => t <= tier.tier).flatMap((t) => draft.entries[t]);
}

/** Silence is not success: too many silent, or nothing but silence so far. Who was not listened to long enough holds as well. */
function silence(draft: Draft, tier: Tier, entries: readonly Entry[]): Outcome | null {
  const quiet = entries.filter((entry) => !entry.heard);
  const unknown = quiet.filter((entry) => !silent(draft, entry));
  const { maxSilent } = draft.plan.rollout;
  if (quiet.length >= SILENT_AT_LEAST && above(quiet.length, maxSilent, entries.length)) {
    if (unknown.length > 0) return listening(draft, unknown);
    return { state: "waiting", reason: reasons.silent(draft.plan, names(quiet), entries.length) };
  }
  const lost = quiet.filter(({ node }) => node.released);
  if (lost.length === 0 || draft.entries[tier.tier].some(({ node }) => node.state === "applied")) return null;
  const unsure = lost.filter((entry) => !silent(draft, entry));
  return unsure.length > 0 ? listening(draft, unsure) : nothingApplied(draft, tier);
}

function soaks(draft: Draft, tier: Tier, more: boolean): Outcome | null {
  if (tier.batch === 0) return null;
  tier.batchDoneAt ??= stamp(draft);
  const until = timeOf(tier.batchDoneAt) + draft.plan.rollout.soak;
  const last = !more && draft.entries[tier.tier].every(({ node }) => node.state !== "pending");
  return last || draft.now >= until ? null : { state: "running", reason: reasons.soaking(until) };
}

/** Those that may be sent now, in order of name, those failing before the plan last: a healthy node is the better first one. */
function candidates(entries: readonly Entry[]): Entry[] {
  const ready = entries.filter(
    (entry) => entry.node.state === "pending" && !entry.node.released && entry.heard,
  );
  return ready.sort(
    (a, b) =>
      Number(a.node.failedBefore) - Number(b.node.failedBefore) || (a.node.node < b.node.node ? -1 : 1),
  );
}

function releaseBatch(draft: Draft, tier: Tier, next: readonly Entry[]): void {
  const entries = draft.entries[tier.tier];
  const out = entries.filter(({ node }) => node.released && node.state !== "skipped").length;
  const sizes = drawBatches(draft.plan.rollout.batches, out, next.length);
  const batches = sizes.flatMap((size, index) => Array<number>(size).fill(tier.batch + 1 + index));
  next.forEach((entry, index) => {
    entry.node.batch = batches[index]!;
  });
  tier.batch += 1;
  tier.batchDoneAt = null;
  for (const entry of next.slice(0, sizes[0])) {
    release(draft, entry, tier.batch);
    updateNode(draft, entry);
  }
  // Whoever is away now comes last.
  for (const { node } of entries) {
    if (!node.released && (node.state === "offline" || node.batch === null))
      node.batch = tier.batch + sizes.length - 1;
  }
}

/** An observed node writes nothing, so it is in no batch: it gets its declaration at once, to say what differs. */
function showObserved(draft: Draft, entry: Entry): void {
  const { facts } = entry;
  if (!facts?.observed || facts.frozen || facts.skipped || entry.node.skip || entry.node.released) return;
  release(draft, entry, 1);
}

/** The end of a tier: whoever is away is let through to it, unless nothing of the tier was ever seen to work. */
function finish(draft: Draft, tier: Tier): Outcome {
  const entries = draft.entries[tier.tier];
  const counted = entries.filter(({ node }) => node.state !== "skipped");
  if (counted.length > 0 && !counted.some(({ node }) => node.state === "applied")) {
    return nothingApplied(draft, tier);
  }
  tier.batch = Math.max(tier.batch, 1);
  for (const entry of counted.filter(({ node }) => !node.released)) release(draft, entry, tier.batch);
  tier.state = "done";
  return { state: "done" };
}

function nothingApplied(draft: Draft, tier: Tier): Outcome {
  const counted = draft.entries[tier.tier].filter(({ node }) => node.state !== "skipped");
  const gone = counted.filter((entry) => silent(draft, entry));
  const failed = counted.filter(({ node }) => node.state === "failed");
  const of = counted.length;
  return {
    state: "waiting",
    reason: reasons.notApplied(draft.plan, tier.tier, names(failed), names(gone), of),
  };
}

function listening(draft: Draft, entries: readonly Entry[]): Outcome {
  return { state: "running", reason: reasons.listening(draft, names(entries)) };
}

function names(entries: readonly Entry[]): string[] {
  return entries.map(({ node }) => node.node);
}
