import { existsSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { eventually } from "../support/eventually.ts";
import { aMesh, isAlive, type Mesh } from "../support/mesh.ts";
import { greet } from "../support/mesh-catalogue.ts";

const LOOP = "opt/worker/worker.sh";

vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 });

// What counts as a large share is not what is tested here.
const GUARD = { guard: { removals: { count: 100, share: "100%" }, restarts: "100%" } };

let mesh: Mesh;
beforeAll(async () => {
  mesh = await aMesh({ change: GUARD });
  await mesh.converged();
});
afterAll(() => mesh?.close());

/** Until the newest plan is the one of this commit and waits. */
async function waiting(commit: string) {
  return eventually(
    async () => {
      const plan = await mesh.plan();
      return plan.commit === commit && plan.state === "waiting" && plan;
    },
    { within: 30_000, every: 50 },
  );
}

const node = (at: number, modules: string[], more: object = {}) => ({
  address: `${mesh.subnet}.${at}`,
  labels: { role: "spare" },
  modules,
  ...more,
});

describe("PLN-6: a machine that is left without a module", () => {
  test("waits for a confirm, then the module leaves the one and starts on the other", async () => {
    // base goes from worker-1 too, so that nothing at all is left there.
    const files = { "groups/all.json": { match: { role: ["web", "store"] }, modules: ["base"] } };
    const [before] = mesh.running("worker-1", LOOP);
    const commit = mesh.push({
      ...files,
      "nodes/worker-1.json": node(4, []),
      "nodes/store-1.json": {
        address: `${mesh.subnet}.3`,
        labels: { role: "store" },
        modules: ["store", "worker"],
      },
    });
    const plan = await waiting(commit);
    expect(plan.reason).toContain("empties worker-1");
    expect(plan.reason).toContain(`mesh plans confirm ${plan.id}`);
    expect(mesh.running("worker-1", LOOP)).toEqual([before]);
    expect(mesh.running("store-1", LOOP)).toEqual([]);
    expect((await mesh.cli("plan", "latest", "--wait")).code).toBe(3);

    expect((await mesh.cli("plans", "confirm", String(plan.id))).code).toBe(0);
    await mesh.converged(commit);
    expect(mesh.running("worker-1", LOOP)).toEqual([]);
    expect(mesh.file("worker-1", LOOP)).toBeNull();
    expect(mesh.running("store-1", LOOP)).toHaveLength(1);
    expect(isAlive(mesh.pid("host-worker-1"))).toBe(true);
  });

  test("a trailer that says what the guard says lets it go at once; one that says something else does not", async () => {
    const moveBack = {
      "nodes/worker-1.json": node(4, ["worker"]),
      "nodes/store-1.json": { address: `${mesh.subnet}.3`, labels: { role: "store" }, modules: ["store"] },
    };
    await mesh.converged(mesh.push(moveBack));
    // Undoing only what the plan before did needs no yes, so another one goes between.
    await mesh.converged(mesh.push(greet("between", GUARD)));
    const wrong = mesh.push(
      { "nodes/worker-1.json": node(4, []) },
      "Empty it\n\nMesh-Confirm: emptied web-1",
    );
    await waiting(wrong);
    const right = mesh.push({}, "Empty it\n\nMesh-Confirm: emptied worker-1");
    await mesh.converged(right);
    expect(mesh.running("worker-1", LOOP)).toEqual([]);
    await mesh.converged(mesh.push({ "nodes/worker-1.json": node(4, ["worker"]) }));
    expect(mesh.running("worker-1", LOOP)).toHaveLength(1);
  });

  test("a renamed machine is a new one; the old name is released and keeps what it runs", async () => {
    const [before] = mesh.running("worker-1", LOOP);
    const commit = mesh.push({
      "nodes/worker-1.json": null,
      "nodes/worker-2.json": node(5, ["worker"]),
    });
    await mesh.converged(commit);
    expect(await mesh.stateOf("worker-1")).toBe("released");
    expect(await mesh.stateOf("worker-2")).toBe("converged");
    expect(mesh.running("worker-2", LOOP)).toHaveLength(1);
    expect(mesh.running("worker-1", LOOP)).toEqual([before]);
    expect(isAlive(mesh.pid("host-worker-1"))).toBe(true);
  });

  test("a deleted machine is released, is sent nothing more, and keeps what it runs", async () => {
    const [before] = mesh.running("worker-2", LOOP);
    const { sequence } = (await mesh.node("worker-2")).declared;
    await mesh.converged(mesh.push({ "nodes/worker-2.json": null }));
    expect(await mesh.stateOf("worker-2")).toBe("released");
    await mesh.converged(mesh.push(greet("others only", GUARD)));
    expect((await mesh.node("worker-2")).declared.sequence).toBe(sequence);
    expect(mesh.running("worker-2", LOOP)).toEqual([before]);
    expect((await mesh.cli("status", "--check")).code).toBe(0);
  });

  test("with `retire` in the commit before, it is emptied, its host ends, and then its file may go", async () => {
    await mesh.converged(mesh.push({ "nodes/worker-3.json": node(6, ["worker"]) }));
    expect(mesh.running("worker-3", LOOP)).toHaveLength(1);
    await mesh.converged(mesh.push(greet("between again", GUARD)));
    const retire = mesh.push({ "nodes/worker-3.json": node(6, ["worker"], { retire: true }) });
    const plan = await waiting(retire);
    const host = mesh.pid("host-worker-3");
    expect((await mesh.cli("plans", "confirm", String(plan.id))).code).toBe(0);
    await eventually(async () => (await mesh.stateOf("worker-3")) === "retired", { within: 30_000 });
    expect(mesh.running("worker-3", LOOP)).toEqual([]);
    expect(mesh.file("worker-3", LOOP)).toBeNull();
    await eventually(() => !isAlive(host), { within: 15_000 });
    await mesh.converged(mesh.push({ "nodes/worker-3.json": null }));
    expect(isAlive(host)).toBe(false);
  });
});

describe("history that is rewritten", () => {
  test("waits, says so, and goes on with a confirm", async () => {
    await mesh.converged(mesh.push(greet("to be forgotten", GUARD)));
    mesh.git("reset", "-q", "--hard", "HEAD~1");
    const commit = mesh.commit(greet("rewritten", GUARD));
    mesh.git("push", "-q", "--force", "origin", "HEAD:main");
    const plan = await waiting(commit);
    expect(plan.reason).toContain("does not descend from");
    expect(mesh.file("web-1", "etc/note")).toBe("to be forgotten on web-1\n");
    expect((await mesh.cli("plans", "confirm", String(plan.id))).code).toBe(0);
    await mesh.converged(commit);
    expect(mesh.file("web-1", "etc/note")).toBe("rewritten on web-1\n");
  });
});

describe("a branch that is not there", () => {
  const bare = (...args: string[]) => mesh.git("--git-dir", join(mesh.dir, "catalogue.git"), ...args);

  test("removes nothing: status says so, and when it comes back all goes on", async () => {
    const commit = mesh.git("rev-parse", "HEAD");
    const { sequence } = (await mesh.node("web-1")).declared;
    for (const rename of [false, true]) {
      if (rename) bare("branch", "-m", "main", "trunk");
      else bare("update-ref", "-d", "refs/heads/main");
      await eventually(async () => (await mesh.status()).catalogue.problems.length > 0, { within: 15_000 });
      const { catalogue, nodes } = await mesh.status();
      expect(catalogue.problems[0]?.message).toContain("main");
      expect(catalogue.deployed).toBe(commit);
      expect(nodes.filter(({ state }) => state === "converged")).toHaveLength(3);
      if (rename) bare("branch", "-m", "trunk", "main");
      else bare("update-ref", "refs/heads/main", commit);
      await mesh.converged(commit);
    }
    expect((await mesh.node("web-1")).declared.sequence).toBe(sequence);
    await mesh.converged(mesh.push(greet("after the branch", GUARD)));
  });

  test("a commit with a missing object is refused by name, and the next one is taken", async () => {
    const good = mesh.git("rev-parse", "HEAD");
    const commit = mesh.commit({ "modules/base/extra.txt": `only here ${Date.now()}` });
    const blob = mesh.git("rev-parse", "HEAD:modules/base/module.json");
    const changed = mesh.commit({
      "modules/base/module.json": `${mesh.git("show", "HEAD:modules/base/module.json")}\n`,
    });
    expect(blob).not.toBe(mesh.git("rev-parse", "HEAD:modules/base/module.json"));
    const gone = mesh.git("rev-parse", "HEAD:modules/base/module.json");
    // The objects arrive first, one is lost, then the ref moves.
    mesh.git("push", "-q", "origin", `${changed}:refs/heads/side`);
    loseObject(join(mesh.dir, "catalogue.git"), gone);
    bare("update-ref", "refs/heads/main", changed);
    await eventually(async () => (await mesh.status()).catalogue.problems.length > 0, { within: 15_000 });
    const { catalogue } = await mesh.status();
    expect(catalogue.problems[0]?.message).toContain(gone.slice(0, 10));
    expect(catalogue.deployed).toBe(good);
    expect(mesh.file("web-1", "etc/note")).toBe("after the branch on web-1\n");

    mesh.git("reset", "-q", "--hard", good);
    bare("update-ref", "refs/heads/main", good);
    bare("update-ref", "-d", "refs/heads/side");
    expect(commit).not.toBe(good);
    await mesh.converged(mesh.push(greet("whole again", GUARD)));
  });
});

describe("CAT-1: pushes with Git's own maintenance between them", () => {
  test("are taken as always, and maintenance alone leads to nothing", async () => {
    const bare = (...args: string[]) => mesh.git("--git-dir", join(mesh.dir, "catalogue.git"), ...args);
    await mesh.converged(mesh.push(greet("packed 1", GUARD)));
    const { plans } = await mesh.ask("plans");
    bare("pack-refs", "--all");
    bare("gc", "-q", "--prune=now");
    expect(existsSync(join(mesh.dir, "catalogue.git/refs/heads/main"))).toBe(false);
    expect((await mesh.plan()).id).toBe(plans[0].id);
    expect((await mesh.status()).catalogue.problems).toEqual([]);
    await mesh.converged(mesh.push(greet("packed 2", GUARD)));
    bare("gc", "-q", "--prune=now");
    bare("pack-refs", "--all");
    // A controller that starts while the ref is only packed.
    await mesh.killed("controller");
    await mesh.converged(mesh.push(greet("packed 3", GUARD)));
    expect((await mesh.ask("plans")).plans).toHaveLength(plans.length + 2);
    expect(mesh.file("web-1", "etc/note")).toBe("packed 3 on web-1\n");
  });
});

/** Removes one object; what a small push brought lies loose. */
function loseObject(gitDir: string, oid: string): void {
  const loose = join(gitDir, "objects", oid.slice(0, 2), oid.slice(2));
  expect(existsSync(loose)).toBe(true);
  rmSync(loose);
}
