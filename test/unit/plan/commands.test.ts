import { describe, expect, it } from "vitest";
import { applyCommand } from "../../../src/plan/apply-command.ts";
import { planDocument, tally } from "../../../src/plan/status.ts";
import { all, aMesh } from "./world.ts";

const hit = { rule: "removals" as const, detail: "removes 34 of 90 resources", item: "removals 34" };
const confirm = { command: "confirm" as const, node: null, by: "ops" };

describe("confirm", () => {
  it("lets a plan go that the guard holds", () => {
    const world = aMesh(1);
    world.merge({ touch: { 2: all(world) }, guard: [hit] });
    expect(world.work().release).toEqual([]);
    expect(world.plan.state).toBe("waiting");
    expect(world.plan.reason).toContain("removes 34 of 90 resources; let it go with: mesh plans confirm 1");
    world.command("confirm");
    world.settle();
    expect(world.plan.state).toBe("done");
  });

  it("is not needed where the commit's trailer says what the guard says", () => {
    const world = aMesh(1);
    world.merge({ touch: { 2: all(world) }, guard: [hit], message: "x\n\nMesh-Confirm: removals 34" });
    expect(world.work().release).toHaveLength(1);
    const other = aMesh(1);
    other.merge({ touch: { 2: all(other) }, guard: [hit], message: "x\n\nMesh-Confirm: removals 35" });
    expect(other.work().release).toEqual([]);
  });

  it("is refused for a superseded plan, by name of the newer one, worked since or not", () => {
    const world = aMesh(1);
    const plan = world.merge({ touch: { 2: all(world) }, guard: [hit] });
    expect(() => applyCommand(plan, confirm, world.now, 2)).toThrow(/superseded by plan 2/);
    const gone = { ...plan, state: "superseded" as const, supersededBy: 2 };
    expect(() => applyCommand(gone, confirm, world.now)).toThrow(/superseded by plan 2/);
  });

  it("is refused where the guard found nothing, and while the plan is stopped", () => {
    const world = aMesh(1);
    const plan = world.merge({ touch: { 2: all(world) } });
    expect(() => applyCommand(plan, confirm, world.now)).toThrow(/asks for no confirm/);
    const held = world.merge({ touch: { 2: all(world) }, guard: [hit] });
    const stopped = applyCommand(held, { ...confirm, command: "stop" }, world.now);
    expect(() => applyCommand(stopped, confirm, world.now)).toThrow(/is stopped/);
  });
});

describe("stop and retry", () => {
  it("releases nothing after a stop, keeps the ledger true, and goes on with retry", () => {
    const world = aMesh(3);
    world.merge({ touch: { 2: all(world) } });
    world.work();
    world.command("stop");
    expect(world.plan.state).toBe("stopped");
    world.report("web-01", "applied");
    expect(world.work().release).toEqual([]);
    expect(world.states()["web-01"]).toBe("applied");
    expect(world.plan).toMatchObject({ state: "stopped" });
    expect(world.plan.reason).toContain("mesh plans retry 1");
    expect(world.plan.tiers[2].state).toBe("halted");
    world.command("retry");
    world.settle();
    expect(world.plan.state).toBe("done");
  });

  it("sends failed nodes again under a new sequence, and the old report no longer counts", () => {
    const world = aMesh(2);
    world.merge({ touch: { 2: all(world) } });
    world.work();
    world.report("web-01", "failed");
    world.work();
    world.command("retry");
    world.command("retry");
    expect(world.work().release).toMatchObject([{ node: "web-01", sequence: 2 }]);
    expect(world.states()["web-01"]).toBe("sent");
    expect(world.work().release).toEqual([]);
    world.settle();
    expect(world.plan.state).toBe("done");
  });

  it("sends nothing again to a node that came round before the retry was worked", () => {
    const world = aMesh(1);
    world.merge({ touch: { 2: all(world) } });
    world.work();
    world.report("web-01", "failed");
    world.work();
    world.command("retry");
    world.report("web-01", "applied");
    expect(world.work().release).toEqual([]);
    expect(world.plan.state).toBe("done");
  });

  it("soaks anew for a node that applied while the plan was stopped", () => {
    const world = aMesh(2);
    world.merge({ touch: { 2: all(world) }, rollout: { soak: 60_000 } });
    world.work();
    world.set("web-01", { frozen: true });
    world.work();
    world.command("stop");
    world.set("web-01", { frozen: false });
    world.tick(60_000);
    world.report("web-01", "applied");
    world.work();
    world.command("retry");
    expect(world.work().release).toEqual([]);
    expect(world.plan.reason).toMatch(/^soaking/);
  });

  it("is refused where nothing failed, and for a plan that is done", () => {
    const world = aMesh(1);
    world.merge({ touch: { 2: all(world) } });
    expect(() => world.command("retry")).toThrow(/nothing of it failed/);
    world.settle();
    for (const command of ["stop", "retry", "confirm"] as const) {
      expect(() => world.command(command)).toThrow(/plan 1 is done/);
    }
  });
});

describe("skip", () => {
  it("lets a halted plan go on without the node, in this tier and the next", () => {
    const world = aMesh(3);
    world.merge({ touch: { 0: all(world), 2: all(world) } });
    world.work();
    world.report("web-01", "failed");
    world.work();
    world.command("skip", "web-01");
    world.settle();
    expect(world.plan.state).toBe("done");
    expect([world.states(0)["web-01"], world.states(2)["web-01"]]).toEqual(["skipped", "skipped"]);
    expect(world.machine("web-01").sent).toHaveLength(1);
  });

  it("is refused for a node that the plan does not touch", () => {
    const world = aMesh(1);
    world.merge({ touch: { 2: all(world) } });
    expect(() => world.command("skip", "web-99")).toThrow(/does not touch node "web-99"/);
  });
});

describe("what is shown", () => {
  it("has exactly the keys of the contract, and a tally in words", () => {
    const world = aMesh(3);
    world.merge({ touch: { 2: all(world) } });
    world.work();
    const shown = planDocument(world.plan);
    expect(Object.keys(shown)).toEqual([
      ...["id", "commit", "base", "state", "reason", "createdAt", "finishedAt", "tiers"],
    ]);
    expect(Object.keys(shown.tiers[2]!.nodes[0]!)).toEqual([
      ...["node", "batch", "state", "revision", "sentAt", "appliedAt", "error"],
    ]);
    expect(tally(world.plan.tiers[2])).toBe("0 of 3 applied, 1 sent, 2 pending");
  });

  it("keeps what a newer release wrote into a plan", () => {
    const world = aMesh(1);
    world.merge({ touch: { 2: all(world) } });
    world.plans[0] = { ...world.plan, later: { a: 1 } } as typeof world.plan;
    world.settle();
    expect(world.plan).toMatchObject({ later: { a: 1 }, state: "done" });
  });
});
