import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { readCatalogueState } from "../../../src/inventory/catalogue.ts";
import { takeSeat } from "../../../src/inventory/controllers.ts";
import { freeze, unfreeze } from "../../../src/inventory/freezes.ts";
import { readComposeFacts } from "../../../src/inventory/generation.ts";
import { recordHeartbeats } from "../../../src/inventory/heartbeats.ts";
import { keepHouse } from "../../../src/inventory/housekeeping.ts";
import { nodeState } from "../../../src/inventory/node-state.ts";
import { readNodes } from "../../../src/inventory/nodes.ts";
import { NotActive, withEpoch, withPlanLock } from "../../../src/inventory/plan-lock.ts";
import { readPorts } from "../../../src/inventory/ports.ts";
import { foldReports } from "../../../src/inventory/reports.ts";
import {
  forgetPublished,
  markPublished,
  pushAgain,
  readUnpublished,
} from "../../../src/inventory/sending.ts";
import { systemClock } from "../../../src/io/clock.ts";
import { applyCommand } from "../../../src/plan/apply-command.ts";
import { commandPlan, PlanSuperseded } from "../../../src/plan/command-verb.ts";
import { decide } from "../../../src/plan/decide.ts";
import { BodiesMissing, type Merged } from "../../../src/plan/merge.ts";
import type { Plan } from "../../../src/plan/model.ts";
import { readPlan, readPlans } from "../../../src/plan/store.ts";
import { type Trigger, type WorkDeps, workPlan } from "../../../src/plan/work.ts";
import type { Report } from "../../../src/report/schema.ts";
import { aDeclaredNode, aMerge, anInventory, aReport, aSentView } from "../../support/inventory.ts";

describe("plan work", () => {
  let at: Awaited<ReturnType<typeof anInventory>>;
  let seq = 0;
  let number = 0;
  beforeEach(async () => {
    at = await anInventory();
  });
  afterEach(() => at.done());

  const deps = (): WorkDeps => ({
    inventory: at.inventory,
    epoch: at.epoch,
    decide,
    applyCommand,
    clock: systemClock,
    facts: () => ({ connectedAt: "2026-01-01T00:00:00.000Z", builderThere: false }),
  });
  const work = async (trigger: Trigger = "report") => {
    const result = await workPlan(deps(), trigger);
    if (!result.worked) throw new Error(result.why);
    return result;
  };
  const planOf = (merged: Merged): Plan => {
    if (merged.stale) throw new Error("stale");
    return merged.plan;
  };
  const heard = (...nodes: string[]) =>
    recordHeartbeats(
      at.inventory.db,
      at.epoch,
      nodes.map((node) => ({ node, sequence: 0 })),
    );
  const report = (over: Partial<Report>) =>
    withEpoch(at.inventory, at.epoch, (tx) =>
      foldReports(tx, [{ seq: ++seq, data: aReport({ number: ++number, ...over }) }], {
        stream: "EVENTS",
        created: "t",
        seq,
      }),
    );
  const row = async (name: string) => (await readNodes(at.inventory.db, [name]))[0]!;

  test("a merge is released, published, reported and done, and says so everywhere", async () => {
    await heard("a", "b");
    const plan = planOf(await aMerge(at, "c1", ["a", "b"]));
    expect((await work("merge")).released.sort()).toEqual(["a", "b"]);
    const unpublished = await readUnpublished(at.inventory.db, 10);
    expect(unpublished).toMatchObject([
      { node: "a", sequence: 1, revision: "c1/a", commit: "c1", tier: 2, body: '{"node":"a","commit":"c1"}' },
      { node: "b", sequence: 1 },
    ]);
    await markPublished(at.inventory.db, unpublished);
    expect(await readUnpublished(at.inventory.db, 10)).toEqual([]);
    await report({ node: "a", revision: "c1/a", sequence: 1 });
    await work();
    await report({ node: "b", revision: "c1/b", sequence: 1 });
    const { plan: done } = await work();
    expect(done.state).toBe("done");
    expect(await readPlan(at.inventory.db, plan.id)).toEqual(done);
    expect(await readPlans(at.inventory.db)).toMatchObject([{ id: 1, state: "done", tier: 2, commit: "c1" }]);
    expect(await readCatalogueState(at.inventory.db)).toMatchObject({
      base: "c1",
      deployed: "c1",
      goodCommit: "c1",
    });
    const facts = { now: Date.now(), heartbeat: 30_000, connectedAt: "2026-01-01T00:00:00.000Z" };
    expect(nodeState(await row("a"), facts)).toBe("converged");
  });

  test("work that changes nothing saves nothing, and a second run releases nothing twice", async () => {
    await heard("a");
    await aMerge(at, "c1", ["a"]);
    await work("merge");
    const again = await work("timer");
    expect(again).toMatchObject({ changed: false, released: [] });
    expect((await row("a")).wantedSequence).toBe(1);
  });

  test("a newer merge supersedes the running plan, whose nodes get the next sequence", async () => {
    await heard("a");
    await aMerge(at, "c1", ["a"]);
    await work("merge");
    expect(await aMerge(at, "c2", ["a"])).toMatchObject({ stale: false, superseded: [1] });
    expect((await readPlan(at.inventory.db, 1))!).toMatchObject({ state: "superseded", supersededBy: 2 });
    await work("merge");
    expect(await readUnpublished(at.inventory.db, 10)).toMatchObject([{ sequence: 2, revision: "c2/a" }]);
  });

  test("a merge composed against what nodes are no longer sent is stale, also when it was saved before", async () => {
    await heard("a");
    const { generation } = await readComposeFacts(at.inventory.db);
    await aMerge(at, "c1", ["a"]);
    expect(await aMerge(at, "c1", ["a"], { generation })).toEqual({ stale: true });
    const before = (await readComposeFacts(at.inventory.db)).generation;
    await work("merge");
    expect(await aMerge(at, "c2", ["a"], { generation: before })).toEqual({ stale: true });
    expect(await readPlans(at.inventory.db)).toHaveLength(1);
  });

  test("a merge whose bodies were not kept changes nothing", async () => {
    const targets = [{ node: "a", tier: 2 as const, revision: "nowhere", sent: aSentView() }];
    await expect(aMerge(at, "c1", ["a"], { targets })).rejects.toThrow(BodiesMissing);
    expect(await readPlans(at.inventory.db)).toEqual([]);
    expect(await readNodes(at.inventory.db)).toEqual([]);
  });

  test("a merge that does not change a node advances only its commit", async () => {
    await heard("a");
    await aMerge(at, "c1", ["a"]);
    await work("merge");
    const sent = aSentView({ address: "10.0.0.1" });
    await aMerge(at, "c2", ["a"], { targets: [], unchanged: [{ node: "a", sent }] });
    expect(await row("a")).toMatchObject({ wantedSequence: 1, wantedRevision: "c1/a", wantedCommit: "c2" });
    const facts = await readComposeFacts(at.inventory.db);
    expect(facts.sent.get("a")).toEqual(sent);
    await aMerge(at, "c3", ["a"], {
      targets: [],
      unchanged: [{ node: "a", sent: { ...sent } }],
      sentBefore: facts.sent,
    });
    const later = await readComposeFacts(at.inventory.db, facts);
    expect(later.sent.get("a")).toBe(facts.sent.get("a"));
    await aMerge(at, "c4", ["a"], {
      targets: [],
      unchanged: [{ node: "a", sent: aSentView() }],
      sentBefore: later.sent,
    });
    expect((await readComposeFacts(at.inventory.db, later)).sent.get("a")).toEqual(aSentView());
  });

  test("fields that a newer release wrote into the plan are kept", async () => {
    await heard("a");
    const plan = planOf(await aMerge(at, "c1", ["a"]));
    const tiers = plan.tiers.map((tier) => ({
      ...tier,
      later: 2,
      nodes: tier.nodes.map((n) => ({ ...n, later: 3 })),
    }));
    await at.inventory.db.query("UPDATE mesh.plans SET body = $1", [
      JSON.stringify({ ...plan, tiers, later: 1 }),
    ]);
    await work("merge");
    const saved = (await readPlan(at.inventory.db, "latest")) as unknown as {
      later: number;
      tiers: Array<{ later: number; nodes: Array<{ later: number; released: boolean }> }>;
    };
    expect(saved.later).toBe(1);
    expect(saved.tiers[2]).toMatchObject({ later: 2, nodes: [{ later: 3, released: true }] });
  });

  test("a paused controller that wakes works nothing", async () => {
    await heard("a");
    await aMerge(at, "c1", ["a"]);
    await takeSeat(at.inventory.lease, "test");
    await expect(workPlan(deps(), "timer")).rejects.toThrow(NotActive);
    await expect(aMerge(at, "c2", ["a"])).rejects.toThrow(NotActive);
    expect(await readUnpublished(at.inventory.db, 10)).toEqual([]);
  });

  test("a freeze of a node or of the mesh holds what is wanted, until unfreeze", async () => {
    await heard("a", "b");
    await aMerge(at, "c1", ["a", "b"]);
    await work("merge");
    const locked = <T>(change: Parameters<typeof withPlanLock<T>>[2]) =>
      withPlanLock(at.inventory, { mode: "wait", epoch: null }, change);
    await locked((tx) => freeze(tx, "a", { reason: "by hand", by: "me" }));
    expect((await readUnpublished(at.inventory.db, 10)).map(({ node }) => node)).toEqual(["b"]);
    expect(nodeState(await row("a"), { now: 0, heartbeat: 1, connectedAt: null })).toBe("frozen");
    await locked((tx) => freeze(tx, null, { reason: "all", by: "me" }));
    expect(await readUnpublished(at.inventory.db, 10)).toEqual([]);
    expect(await locked((tx) => unfreeze(tx, null))).toBe(true);
    expect(await locked((tx) => unfreeze(tx, "a"))).toBe(true);
    expect(await readUnpublished(at.inventory.db, 10)).toHaveLength(2);
  });

  test("a broker that lost everything gets all again under the same sequences, a push gives a new one", async () => {
    await heard("a");
    await aMerge(at, "c1", ["a"]);
    await work("merge");
    await markPublished(at.inventory.db, [{ node: "a", sequence: 1 }]);
    await forgetPublished(at.inventory.db);
    expect(await readUnpublished(at.inventory.db, 10)).toMatchObject([{ sequence: 1 }]);
    await withPlanLock(at.inventory, { mode: "wait", epoch: null }, (tx) => pushAgain(tx, ["a"]));
    expect(await readUnpublished(at.inventory.db, 10)).toMatchObject([{ sequence: 2, revision: "c1/a" }]);
  });

  test("commands are facts: worked once, refused for a superseded plan, the first answer for the same call", async () => {
    await heard("a");
    await aMerge(at, "c1", ["a"]);
    await work("merge");
    const verb = { inventory: at.inventory, applyCommand, clock: systemClock };
    const stop = { plan: 1, command: "stop" as const, node: null, by: "me" };
    const first = await commandPlan(verb, { id: "k1", verb: "plans-stop" }, stop);
    expect(await commandPlan(verb, { id: "k1", verb: "plans-stop" }, stop)).toEqual(first);
    expect((await work("command")).plan.state).toBe("stopped");
    expect(await at.inventory.db.query("SELECT count(*) AS n FROM mesh.plan_commands")).toEqual([{ n: 1 }]);
    await aMerge(at, "c2", ["a"]);
    const late = commandPlan(verb, { id: "k2", verb: "plans-confirm" }, { ...stop, command: "confirm" });
    await expect(late).rejects.toThrow(PlanSuperseded);
  });

  test("a freed port stays taken until the plan that freed it is done", async () => {
    await heard("a");
    await aMerge(at, "c1", ["a"], { ports: new Map([["a", new Map([["web/http", 20_000]])]]) });
    await aMerge(at, "c2", ["a"], { ports: new Map([["a", new Map([["web/new", 20_001]])]]) });
    expect((await readPorts(at.inventory.db)).get("a")!.size).toBe(2);
    await work("merge");
    await report({ node: "a", revision: "c2/a", sequence: 1 });
    expect((await work()).plan.state).toBe("done");
    expect([...(await readPorts(at.inventory.db)).get("a")!]).toEqual([["web/new", 20_001]]);
  });

  test("PLN-6: a deleted node is released and sent nothing, a retired one is retired once it is empty, an unknown one is an orphan", async () => {
    await heard("a", "b", "stranger");
    await aMerge(at, "c1", ["a", "b"]);
    await work("merge");
    await aMerge(at, "c2", ["b"], { declared: [aDeclaredNode("b", { retire: true })] });
    await work("merge");
    const facts = { now: Date.now(), heartbeat: 30_000, connectedAt: null };
    expect(nodeState(await row("a"), facts)).toBe("released");
    expect((await readUnpublished(at.inventory.db, 10)).map(({ node }) => node)).toEqual(["b"]);
    expect(nodeState(await row("b"), facts)).not.toBe("retired");
    await report({ node: "b", revision: "c2/b", sequence: 2 });
    expect((await work()).retired).toEqual(["b"]);
    expect(nodeState(await row("b"), facts)).toBe("retired");
    expect(nodeState(await row("stranger"), facts)).toBe("orphaned");
  });

  test("housekeeping removes only what nobody asks for", async () => {
    await heard("a");
    await aMerge(at, "c1", ["a"]);
    await work("merge");
    await aMerge(at, "c2", ["a"]);
    await at.inventory.db.query("INSERT INTO mesh.bodies VALUES ('old', 'a', '{}', now())");
    await at.inventory.db.query("UPDATE mesh.bodies SET kept_at = now() - interval '2 hours'");
    await keepHouse(at.inventory, at.epoch);
    const left = await at.inventory.db.query("SELECT revision FROM mesh.bodies ORDER BY 1");
    expect(left).toEqual([{ revision: "c1/a" }, { revision: "c2/a" }]);
  });
});
