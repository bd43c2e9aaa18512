import { describe, expect, it } from "vitest";
import { decide } from "../../../src/plan/decide.ts";
import { nextWakeAt } from "../../../src/plan/wake.ts";
import { aBuild, all, aMesh, HEARTBEAT, type World } from "./world.ts";

const OUT = 3 * HEARTBEAT;

function down(world: World, ...names: string[]): void {
  for (const name of names) world.machine(name).up = false;
}

describe("batches", () => {
  it("sends one node first, then a tenth, half and all, each after the one before applied", () => {
    const world = aMesh(20);
    world.merge({ touch: { 2: all(world) } });
    const sizes: number[] = [];
    for (let round = 0; round < 4; round++) {
      world.work();
      sizes.push(world.released().length);
      expect(world.work().release).toEqual([]);
      for (const name of world.nodes().filter(({ state }) => state === "sent"))
        world.report(name.node, "applied");
    }
    expect(sizes).toEqual([1, 1, 8, 10]);
    world.work();
    expect(world.plan.state).toBe("done");
    expect(world.plan.finishedAt).not.toBeNull();
    expect([...new Set(world.nodes().map(({ batch }) => batch))]).toEqual([1, 2, 3, 4]);
  });

  it("passes over a batch that adds nobody, and sends whoever a last share below 100% leaves", () => {
    const world = aMesh(3);
    world.merge({ touch: { 2: all(world) }, rollout: { batches: [1, "10%", 1, "50%"] } });
    world.settle();
    expect(world.nodes().map(({ batch }) => batch)).toEqual([1, 2, 3]);
    expect(world.plan.state).toBe("done");
  });

  it("waits for `soak` after a batch before the next, and after a tier before the next", () => {
    const world = aMesh(2);
    world.merge({ touch: { 0: all(world), 2: all(world) }, rollout: { soak: 60_000 } });
    const soak = () => {
      world.settle();
      expect(world.plan.reason).toMatch(/^soaking until/);
      world.tick(59_000);
      expect(world.work().release).toEqual([]);
      expect(nextWakeAt(world.plan, world.facts(), world.now)).toBe(world.now + 1_000);
      world.tick(1_000);
    };
    soak();
    soak();
    soak();
    world.settle();
    expect(world.plan.state).toBe("done");
  });

  it("puts a node that was failing before the plan behind the healthy ones", () => {
    const world = aMesh(3);
    world.merge({ touch: { 2: all(world) }, failing: ["web-01"] });
    world.work();
    expect(world.released()).toEqual(["web-02"]);
  });

  it("takes another first node when the one that was to be first is gone before it is sent", () => {
    const world = aMesh(3);
    down(world, "web-01");
    world.tick(OUT);
    world.merge({ touch: { 2: all(world) } });
    world.work();
    expect(world.released()).toEqual(["web-02"]);
  });
});

describe("tiers", () => {
  it("starts a tier only when the one before is done, and skips one that touches nothing", () => {
    const world = aMesh(1);
    world.merge({ touch: { 0: all(world), 2: all(world) } });
    world.work();
    expect(world.plan.tiers.map(({ state }) => state)).toEqual(["rolling-out", "skipped", "pending"]);
    world.report("web-01", "applied");
    world.work();
    expect(world.plan.tiers.map(({ state }) => state)).toEqual(["done", "skipped", "rolling-out"]);
    expect(world.last!.release).toEqual([
      { node: "web-01", tier: 2, revision: world.node("web-01").revision, sequence: 2 },
    ]);
    world.settle();
    expect(world.plan.state).toBe("done");
  });

  it("is done at once, with skipped tiers, when the merge changes nothing", () => {
    const world = aMesh(2);
    const plan = world.merge({
      touch: {},
      guard: [{ rule: "history", detail: "rewritten", item: "history" }],
    });
    expect(plan.state).toBe("done");
    expect(plan.tiers.map(({ state }) => state)).toEqual(["skipped", "skipped", "skipped"]);
    expect(world.work()).toEqual({ plan, release: [], asks: [] });
  });

  it("sends nothing to a node that is wanted to hold the revision already", () => {
    const world = aMesh(1);
    world.merge({ touch: { 2: ["web-01"] } });
    world.set("web-01", { wantedSequence: 7, wantedRevision: world.node("web-01").revision });
    expect(world.work().release).toEqual([]);
    world.report("web-01", "applied");
    world.work();
    expect(world.plan.state).toBe("done");
  });
});

describe("failures", () => {
  it("halts when more than maxFailures failed, with cause and way out, and sends nothing more", () => {
    const world = aMesh(4);
    world.merge({ touch: { 2: all(world) } });
    world.work();
    world.report("web-01", "failed", "web.server: exit 1");
    expect(world.work().release).toEqual([]);
    expect(world.plan.state).toBe("halted");
    expect(world.plan.tiers[2].state).toBe("halted");
    expect(world.plan.reason).toContain("web.server: exit 1");
    expect(world.plan.reason).toContain("mesh plans retry 1");
  });

  it("goes on by itself when the failing node later reports applied", () => {
    const world = aMesh(4);
    world.merge({ touch: { 2: all(world) } });
    world.work();
    world.report("web-01", "failed");
    world.work();
    world.report("web-01", "applied");
    world.work();
    expect(world.plan.state).toBe("running");
    expect(world.released()).toHaveLength(1);
  });

  it("lets maxFailures pass, and halts at one more", () => {
    const world = aMesh(4);
    world.merge({ touch: { 2: all(world) }, rollout: { batches: [2, "100%"], maxFailures: 1 } });
    world.work();
    world.report("web-01", "failed");
    world.report("web-02", "applied");
    world.work();
    expect(world.released()).toEqual(["web-03", "web-04"]);
    world.report("web-03", "failed");
    world.work();
    expect(world.plan.state).toBe("halted");
  });

  it("counts a node once that fails in two tiers", () => {
    const world = aMesh(2);
    world.merge({
      touch: { 0: all(world), 2: all(world) },
      rollout: { batches: ["100%"], maxFailures: 1 },
    });
    world.work();
    world.report("web-01", "failed");
    world.report("web-02", "applied");
    world.work();
    world.report("web-01", "failed");
    world.report("web-02", "applied");
    world.work();
    expect(world.plan.state).toBe("done");
  });

  it("does not count a node that failed before the plan, unless it worked in between", () => {
    const world = aMesh(3);
    world.merge({
      touch: { 2: all(world) },
      failing: ["web-01"],
      rollout: { batches: ["100%"], soak: 60_000 },
    });
    world.work();
    world.report("web-01", "failed");
    world.work();
    expect(world.plan.state).toBe("running");
    world.report("web-01", "applied");
    world.work();
    world.report("web-01", "failed");
    world.work();
    expect(world.plan.state).toBe("halted");
  });

  it("halts when a node of an earlier batch or tier fails after it had applied", () => {
    const world = aMesh(2);
    world.merge({ touch: { 0: all(world), 2: all(world) }, rollout: { batches: ["100%"] } });
    world.settle(2);
    world.work();
    expect(world.plan.tiers[0].state).toBe("done");
    const late = aMesh(3);
    late.merge({ touch: { 2: all(late) } });
    late.work();
    late.report("web-01", "applied");
    late.work();
    late.report("web-01", "failed", "crashed later");
    late.report("web-02", "applied");
    late.work();
    expect(late.plan.state).toBe("halted");
    expect(late.released()).toEqual([]);
  });

  it("takes `refused` for a failure, and `waiting` and `applying` for progress", () => {
    const world = aMesh(1);
    world.merge({ touch: { 2: all(world) } });
    world.work();
    for (const outcome of ["applying", "waiting"] as const) {
      world.tick(9 * 60_000);
      world.report("web-01", outcome);
      world.work();
      expect(world.states()).toEqual({ "web-01": "sent" });
    }
    world.report("web-01", "refused", "signature");
    world.work();
    expect(world.node("web-01")).toMatchObject({ state: "failed", error: "signature" });
  });

  it("fails a node that makes no progress for `timeout`, from its last progress", () => {
    const world = aMesh(1);
    world.merge({ touch: { 2: all(world) } });
    const wait = (ms: number) => {
      for (let passed = 0; passed < ms; passed += 60_000) {
        world.tick(60_000);
        world.work();
      }
    };
    world.work();
    wait(9 * 60_000);
    world.report("web-01", "applying");
    world.work();
    wait(9 * 60_000);
    expect(world.plan.state).toBe("running");
    wait(60_000);
    expect(world.node("web-01")).toMatchObject({ state: "failed", error: "no progress for 10 min" });
    expect(world.plan.state).toBe("halted");
  });

  it("ignores a report of an older sequence, even with the same revision", () => {
    const world = aMesh(1);
    world.merge({ touch: { 2: all(world) } });
    world.set("web-01", {
      wantedSequence: 4,
      wantedRevision: "other",
      reported: {
        sequence: 3,
        revision: world.node("web-01").revision,
        outcome: "applied",
        error: null,
        progress: "x",
      },
    });
    world.work();
    expect(world.states()).toEqual({ "web-01": "sent" });
  });

  it("sends above a sequence that was reported and that the store does not know", () => {
    const world = aMesh(1);
    world.merge({ touch: { 2: all(world) } });
    world.set("web-01", {
      reported: { sequence: 41, revision: "old", outcome: "applied", error: null, progress: "x" },
    });
    expect(world.work().release[0]!.sequence).toBe(42);
  });
});

describe("silence", () => {
  it("does not block on a node that was silent before it was sent, and never counts it as applied", () => {
    const world = aMesh(3);
    down(world, "web-02");
    world.tick(OUT);
    world.merge({ touch: { 2: all(world) } });
    world.settle();
    expect(world.plan.state).toBe("done");
    expect(world.states()).toEqual({ "web-01": "applied", "web-02": "offline", "web-03": "applied" });
    expect(world.machine("web-02").sent).toHaveLength(1);
  });

  it("shows a node applied that returns after the plan is done, and the plan stays done", () => {
    const world = aMesh(2);
    down(world, "web-02");
    world.tick(OUT);
    world.merge({ touch: { 0: all(world), 2: all(world) } });
    world.settle();
    expect(world.plan.state).toBe("done");
    const saved = world.plan;
    expect(world.work().plan).toBe(saved);
    world.machine("web-02").up = true;
    world.tick(1_000);
    world.work();
    expect(world.states()["web-02"]).toBe("sent");
    world.report("web-02", "applied");
    world.work();
    expect(world.plan.state).toBe("done");
    expect([world.states(0)["web-02"], world.states(2)["web-02"]]).toEqual(["applied", "applied"]);
    expect(world.node("web-02").appliedAt).not.toBeNull();
    expect(world.machine("web-02").sent).toHaveLength(2);
  });

  it("fails a node that goes silent for three heartbeats after it was sent", () => {
    const world = aMesh(2);
    world.merge({ touch: { 2: all(world) } });
    world.work();
    down(world, "web-01");
    world.tick(OUT - 1_000);
    world.work();
    expect(world.states()["web-01"]).toBe("sent");
    world.tick(1_000);
    world.work();
    expect(world.node("web-01").state).toBe("failed");
    expect(world.plan.state).toBe("halted");
    expect(world.plan.reason).toContain("silent since");
  });

  it("fails a node that applied and went silent while its batch soaks, and goes on when it answers", () => {
    const world = aMesh(2);
    world.merge({ touch: { 2: all(world) }, rollout: { soak: 300_000 } });
    world.settle();
    down(world, "web-01");
    world.tick(60_000);
    world.work();
    world.tick(60_000);
    world.work();
    expect(world.plan.state).toBe("halted");
    world.machine("web-01").up = true;
    world.tick(1_000);
    world.work();
    expect(world.plan.state).toBe("running");
    expect(world.plan.reason).toMatch(/^soaking/);
  });

  it("calls nobody offline until three heartbeats after the controller itself connected", () => {
    const world = aMesh(2, { up: false, connectedFor: 0 });
    world.merge({ touch: { 2: all(world) } });
    world.tick(OUT - 1_000);
    world.work();
    expect(world.states()).toEqual({ "web-01": "pending", "web-02": "pending" });
    expect(world.plan.state).toBe("running");
    expect(world.plan.reason).toBe("listening for web-01, web-02");
    expect(nextWakeAt(world.plan, world.facts(), world.now)).toBe(world.now + 1_000);
    world.tick(1_000);
    world.work();
    expect(world.states()).toEqual({ "web-01": "offline", "web-02": "offline" });
    expect(world.plan.state).toBe("waiting");
    expect(world.plan.reason).toContain("2 of 2 silent");
  });

  it("waits with the first plan until a host comes, then goes on by itself, batch by batch", () => {
    const world = aMesh(3, { up: false });
    world.merge({ touch: { 0: all(world) } });
    world.work();
    expect(world.plan.state).toBe("waiting");
    expect(world.released()).toEqual([]);
    for (const name of all(world)) world.machine(name).up = true;
    world.tick(1_000);
    world.work();
    expect(world.released()).toEqual(["web-01"]);
    world.settle();
    expect(world.plan.state).toBe("done");
  });

  it("sends nothing and judges nobody while the broker cannot be reached", () => {
    const world = aMesh(2);
    world.merge({ touch: { 2: all(world) } });
    world.work();
    world.connectedAt = null;
    for (let minute = 0; minute < 30; minute++) {
      world.tick(60_000);
      expect(world.work().release).toEqual([]);
    }
    expect(world.plan.state).toBe("running");
    expect(world.plan.reason).toContain("the broker cannot be reached");
    expect(world.states()["web-01"]).toBe("sent");
  });

  it("waits above maxSilent once at least five are silent, and says how many", () => {
    const world = aMesh(60);
    down(world, ...all(world).slice(0, 13));
    world.tick(OUT);
    world.merge({ touch: { 2: all(world) } });
    world.work();
    expect(world.plan.state).toBe("waiting");
    expect(world.plan.reason).toContain("13 of 60 silent (web-01, web-02, web-03 and 10 more)");
    expect(world.plan.reason).toContain("mesh plans skip 1 web-01");
    expect(world.released()).toEqual([]);
    world.machine("web-13").up = true;
    world.tick(1);
    world.settle();
    expect(world.plan.state).toBe("done");
    expect(Object.values(world.states()).filter((state) => state === "offline")).toHaveLength(12);
  });

  it("does not wait for four silent nodes of six", () => {
    const world = aMesh(6);
    down(world, "web-01", "web-02", "web-03", "web-04");
    world.tick(OUT);
    world.merge({ touch: { 2: all(world) } });
    world.settle();
    expect(world.plan.state).toBe("done");
  });

  it("does not take a first batch that fell silent within maxFailures for a success", () => {
    const world = aMesh(3);
    world.merge({ touch: { 2: all(world) }, rollout: { maxFailures: 1 } });
    world.work();
    down(world, "web-01");
    world.tick(OUT);
    expect(world.work().release).toEqual([]);
    expect(world.plan.state).toBe("waiting");
    expect(world.plan.reason).toContain("no node has applied tier 2: 1 of 3 silent (web-01)");
    world.command("skip", "web-01");
    expect(world.work().release.map(({ node }) => node)).toEqual(["web-02"]);
  });

  it("keeps a node failed that fell silent in a batch, also once the next batch went within maxFailures", () => {
    const world = aMesh(5);
    world.merge({ touch: { 2: all(world) }, rollout: { batches: [3], maxFailures: 1, maxSilent: "60%" } });
    world.work();
    world.report("web-01", "applied");
    down(world, "web-01");
    world.tick(OUT);
    for (const name of ["web-02", "web-03"]) world.report(name, "applied");
    world.work();
    expect(world.released()).toEqual(["web-04", "web-05"]);
    world.work();
    expect(world.states()["web-01"]).toBe("failed");
  });

  it("gives a node that returns nothing of a halted plan", () => {
    const world = aMesh(4);
    down(world, "web-04");
    world.tick(OUT);
    world.merge({ touch: { 2: all(world) } });
    world.work();
    world.report("web-01", "failed");
    world.work();
    world.machine("web-04").up = true;
    world.tick(1_000);
    expect(world.work().release).toEqual([]);
    expect(world.states()["web-04"]).toBe("pending");
  });

  it("gives a node that returns in the middle of a tier what its tier released, and waits for it", () => {
    const world = aMesh(3);
    down(world, "web-03");
    world.tick(OUT);
    world.merge({ touch: { 0: all(world), 2: all(world) }, rollout: { batches: ["100%"] } });
    world.work();
    for (const name of ["web-01", "web-02"]) world.report(name, "applied");
    world.work();
    expect(world.states(0)["web-03"]).toBe("offline");
    world.machine("web-03").up = true;
    world.tick(1_000);
    world.work();
    expect(world.node("web-03", 0).state).toBe("sent");
    world.report("web-03", "applied");
    for (const name of ["web-01", "web-02"]) world.report(name, "applied");
    world.settle();
    expect(world.states(2)).toEqual({ "web-01": "applied", "web-02": "applied", "web-03": "applied" });
  });

  it("lets nobody through after a restart before the nodes were listened to", () => {
    const world = aMesh(10);
    down(world, ...all(world).slice(0, 5));
    world.tick(OUT);
    world.connectedAt = world.iso(world.now);
    world.merge({ touch: { 2: all(world) } });
    expect(world.work().release).toEqual([]);
    expect(world.plan.reason).toMatch(/^listening for web-01/);
  });
});

describe("a wall clock that steps", () => {
  it("forward by an hour: fails nobody, calls nobody offline, lets no soak pass", () => {
    const world = aMesh(2);
    world.merge({ touch: { 2: all(world) }, rollout: { soak: 60_000 } });
    world.settle();
    world.step(3_600_000, false);
    world.work();
    expect(world.states()).toEqual({ "web-01": "applied", "web-02": "pending" });
    expect(world.plan.reason).toMatch(/^listening for web-01/);
    world.tick(1_000);
    world.work();
    expect(world.plan.reason).toMatch(/^soaking until/);
    world.tick(60_000);
    world.settle();
    expect(world.released().length + world.machine("web-02").sent.length).toBeGreaterThan(0);
  });

  it("back by an hour: a node that is gone is still found silent, one that answers goes on", () => {
    const world = aMesh(3);
    world.merge({ touch: { 2: all(world) }, rollout: { batches: ["100%"] } });
    world.work();
    down(world, "web-01");
    world.step(-3_600_000, false);
    world.work();
    world.tick(1_000);
    for (const name of ["web-02", "web-03"]) world.report(name, "applied");
    world.work();
    expect(world.states()["web-01"]).toBe("sent");
    world.tick(OUT);
    world.work();
    expect(world.states()["web-01"]).toBe("failed");
    expect(world.plan.state).toBe("halted");
  });
});

describe("a wall clock that steps back onto what it said before", () => {
  it("does not take an old sign of life for a new one", () => {
    const world = aMesh(2);
    world.merge({ touch: { 2: all(world) } });
    world.work();
    down(world, "web-01");
    world.tick(80_000);
    world.work();
    world.step(-70_000);
    world.work();
    world.step(-60_000);
    world.work();
    world.tick(OUT);
    world.work();
    expect(world.states()["web-01"]).toBe("failed");
  });
});

describe("observed, frozen, gone", () => {
  it("sends an observed node its declaration, skips it, and never counts it as silent", () => {
    const world = aMesh(2);
    world.set("web-01", { observed: true });
    down(world, "web-01");
    world.tick(OUT);
    world.merge({ touch: { 2: all(world) } });
    world.settle();
    expect(world.states()).toEqual({ "web-01": "skipped", "web-02": "applied" });
    expect(world.machine("web-01").sent).toHaveLength(1);
    expect(world.plan.state).toBe("done");
  });

  it("sends a frozen node nothing, and what its tiers let through once it is let go", () => {
    const world = aMesh(2);
    world.set("web-01", { frozen: true });
    world.merge({ touch: { 0: all(world), 2: all(world) } });
    world.settle();
    expect(world.plan.state).toBe("done");
    expect(world.machine("web-01").sent).toEqual([]);
    expect(world.node("web-01")).toMatchObject({ state: "skipped", error: "frozen" });
    world.set("web-01", { frozen: false });
    expect(world.work().release).toMatchObject([{ node: "web-01", tier: 2 }]);
    world.report("web-01", "applied");
    world.work();
    expect([world.states(0)["web-01"], world.states(2)["web-01"]]).toEqual(["applied", "applied"]);
  });

  it("waits for a node that was sent, frozen and let go again before anybody knows whether it is there", () => {
    const world = aMesh(2);
    world.merge({ touch: { 2: all(world) }, rollout: { batches: ["100%"], maxFailures: 1 } });
    world.work();
    world.set("web-01", { frozen: true });
    down(world, "web-01");
    world.work();
    world.step(-3_600_000);
    world.set("web-01", { frozen: false });
    world.report("web-02", "applied");
    world.work();
    expect(world.states()["web-01"]).toBe("sent");
    expect(world.plan.state).toBe("running");
    world.tick(OUT);
    world.work();
    expect(world.states()["web-01"]).toBe("failed");
  });

  it("waits while the mesh is frozen, and names the way out", () => {
    const world = aMesh(2);
    world.merge({ touch: { 2: all(world) }, builds: { 2: [aBuild("k")] } });
    world.frozen = { reason: "holidays", by: "ops" };
    expect(world.work()).toMatchObject({ release: [], asks: [] });
    expect(world.plan.state).toBe("waiting");
    expect(world.plan.reason).toBe("the mesh is frozen by ops (holidays); let it go with: mesh unfreeze");
    world.frozen = null;
    expect(world.work().asks).toHaveLength(1);
  });

  it("is done with a tier whose nodes are all skipped", () => {
    const world = aMesh(2);
    world.set("web-01", { observed: true });
    world.set("web-02", { frozen: true });
    world.merge({ touch: { 2: all(world) } });
    world.work();
    expect(world.plan.state).toBe("done");
    expect(world.plan.tiers[2].state).toBe("done");
  });

  it("skips a node that left the inventory in the middle of the plan", () => {
    const world = aMesh(2);
    world.merge({ touch: { 2: all(world) } });
    world.work();
    world.machines.delete("web-01");
    world.settle();
    expect(world.states()).toEqual({ "web-01": "skipped", "web-02": "applied" });
    expect(world.plan.state).toBe("done");
  });
});

describe("supersede", () => {
  it.each(["running", "halted", "stopped", "waiting"] as const)("takes over a %s plan", (state) => {
    const world = aMesh(2);
    const hit = { rule: "emptied" as const, detail: "empties web-1", item: "emptied web-1" };
    world.merge({ touch: { 2: all(world) }, guard: state === "waiting" ? [hit] : [] });
    world.work();
    if (state === "halted") world.report("web-01", "failed");
    if (state === "stopped") world.command("stop");
    world.work();
    expect(world.plan.state).toBe(state);
    const { plan, release, asks } = decide(world.plan, world.facts(2), world.now);
    expect(plan).toMatchObject({ state: "superseded", supersededBy: 2 });
    expect(plan.finishedAt).not.toBeNull();
    expect([release, asks]).toEqual([[], []]);
    expect(() => decide(plan, world.facts(2), world.now)).not.toThrow();
  });

  it("leaves a done plan done", () => {
    const world = aMesh(1);
    world.merge({ touch: { 2: all(world) } });
    world.settle();
    expect(decide(world.plan, world.facts(2), world.now).plan).toBe(world.plan);
  });
});

describe("builds", () => {
  it("asks a tier's builds once, first, and rolls out when they are there", () => {
    const world = aMesh(1);
    world.merge({ touch: { 2: all(world) }, builds: { 2: [aBuild("a"), aBuild("b")] } });
    world.builds.set("b", { state: "done", digest: "d", ms: 5, error: null });
    expect(world.work().asks.map(({ key }) => key)).toEqual(["a"]);
    expect(world.plan.tiers[2].state).toBe("building");
    expect(world.plan.tiers[2].builds.map(({ state }) => state)).toEqual(["waiting", "cached"]);
    expect(world.work()).toMatchObject({ asks: [], release: [] });
    world.builds.set("a", { state: "done", digest: "e", ms: 5, error: null });
    expect(world.work().release).toHaveLength(1);
    expect(world.plan.tiers[2].builds[0]).toMatchObject({ state: "done", digest: "e", ms: 5 });
  });

  it("waits, the tier building, where no builder is there", () => {
    const world = aMesh(1);
    world.builderThere = false;
    world.merge({ touch: { 2: all(world) }, builds: { 2: [aBuild("a")] } });
    expect(world.work().asks).toHaveLength(1);
    expect(world.plan.state).toBe("waiting");
    expect(world.plan.tiers[2].state).toBe("building");
    expect(world.plan.reason).toContain("no builder is there for web.a");
  });

  it("halts with the end of the log when a build fails, and `retry` asks it again", () => {
    const world = aMesh(1);
    world.builds.set("a", { state: "failed", digest: null, ms: 1, error: "an older failure" });
    world.merge({ touch: { 2: all(world) }, builds: { 2: [aBuild("a")] } });
    expect(world.work().asks).toHaveLength(1);
    world.builds.set("a", { state: "failed", digest: null, ms: 9, error: "npm ERR! missing script" });
    world.work();
    expect(world.plan.state).toBe("halted");
    expect(world.plan.reason).toContain("npm ERR! missing script");
    world.command("retry");
    expect(world.work().asks).toHaveLength(1);
    expect(world.plan.state).toBe("running");
    world.builds.set("a", { state: "done", digest: "d", ms: 9, error: null });
    world.settle();
    expect(world.plan.state).toBe("done");
  });
});
