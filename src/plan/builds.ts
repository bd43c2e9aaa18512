import type { Draft } from "./draft.ts";
import type { PlanBuild, Tier } from "./model.ts";
import { reasons } from "./reasons.ts";
import type { Outcome } from "./rollout.ts";

/** Asks a tier's builds once each, and follows them. Null: all are there, the rollout may start. */
export function advanceBuilds(draft: Draft, tier: Tier): Outcome | null {
  for (const build of tier.builds) followBuild(draft, build);
  const open = tier.builds.filter((build) => build.state !== "done" && build.state !== "cached");
  if (open.length === 0) return null;
  const failed = open.filter((build) => build.state === "failed");
  if (failed.length > 0) return { state: "halted", reason: reasons.buildFailed(draft.plan, failed) };
  tier.state = "building";
  if (!draft.facts.builderThere) return { state: "waiting", reason: reasons.noBuilder(open) };
  return { state: "running", reason: null };
}

function followBuild(draft: Draft, build: PlanBuild): void {
  if (build.state === "done" || build.state === "cached") return;
  const fact = draft.facts.builds.get(build.key);
  const there = fact?.state === "done" || fact?.state === "cached";
  if (fact && (build.asked || there)) {
    const { digest, ms, error } = fact;
    Object.assign(build, { state: build.asked ? fact.state : "cached", digest, ms, error });
  } else if (!build.asked) {
    // An older failure of the same key is no answer to this ask.
    Object.assign(build, { state: "waiting", digest: null, ms: null, error: null, asked: true });
    draft.asks.push({ ...build });
  }
}
