import { describe, expect, it } from "vitest";
import { MeshFile } from "../../../src/catalogue/schema/mesh.ts";
import { decide } from "../../../src/plan/decide.ts";
import type { NodeFacts, PlanFacts } from "../../../src/plan/model.ts";
import { newPlan } from "../../../src/plan/new.ts";
import { nextWakeAt } from "../../../src/plan/wake.ts";

const HEARTBEAT = 1_000;
const START = Date.parse("2026-01-01T00:00:00Z");
const iso = (ms: number) => new Date(ms).toISOString();

function aPlan() {
  return newPlan(
    {
      id: 1,
      commit: "c".repeat(40),
      subject: "add a machine",
      message: "add a machine",
      base: null,
      nodes: [{ node: "new-1", wanted: null, revisions: [null, null, "r"], failing: false }],
      rollout: MeshFile.parse({}).rollout,
      heartbeatMs: HEARTBEAT,
      guard: [],
    },
    START,
  );
}

/** The controller has been connected for an hour; the machine was declared at START and was never heard. */
function facts(more: Partial<NodeFacts> = {}): PlanFacts {
  const node: NodeFacts = {
    node: "new-1",
    seenAt: null,
    declaredAt: iso(START),
    frozen: false,
    observed: false,
    skipped: false,
    wantedSequence: 0,
    wantedRevision: null,
    reported: null,
    ...more,
  };
  return {
    nodes: new Map([["new-1", node]]),
    frozen: null,
    newerPlan: null,
    connectedAt: iso(START - 3_600_000),
    builds: new Map(),
    builderThere: false,
  };
}

describe("a machine that a merge adds", () => {
  it("is listened for during three heartbeats before it counts as silent", () => {
    const { plan, release } = decide(aPlan(), facts(), START + 1);
    expect(plan.state).toBe("running");
    expect(plan.reason).toContain("listening for new-1");
    expect(release).toEqual([]);
    expect(nextWakeAt(plan, facts(), START + 1)).toBe(START + 3 * HEARTBEAT);
  });

  it("is sent its declaration as soon as its host is heard", () => {
    const first = decide(aPlan(), facts(), START + 1).plan;
    const { release } = decide(first, facts({ seenAt: iso(START + 900) }), START + 901);
    expect(release.map(({ node }) => node)).toEqual(["new-1"]);
  });

  it("is offline when nobody came, and the plan waits and says so", () => {
    const first = decide(aPlan(), facts(), START + 1).plan;
    const { plan } = decide(first, facts(), START + 3 * HEARTBEAT);
    expect(plan.tiers[2].nodes[0]?.state).toBe("offline");
    expect(plan.state).toBe("waiting");
  });

  it("that was declared long ago and never heard is offline at once", () => {
    const { plan } = decide(aPlan(), facts({ declaredAt: iso(START - 3_600_000) }), START + 1);
    expect(plan.tiers[2].nodes[0]?.state).toBe("offline");
  });
});
