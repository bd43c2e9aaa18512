import { rmSync } from "node:fs";
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from "vitest";
import type { EventDoc, PlanDoc } from "../../src/cli/documents.ts";
import { eventually } from "../support/eventually.ts";
import { aMesh, isAlive, type Mesh } from "../support/mesh.ts";
import { greet, meshFile, WEB_PORT } from "../support/mesh-catalogue.ts";

vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 });

const WEB = "opt/web/server.mjs";

let mesh: Mesh;
const paused = new Set<number>();
beforeAll(async () => {
  mesh = await aMesh();
  await mesh.converged();
});
afterEach(() => {
  for (const pid of paused) if (isAlive(pid)) process.kill(pid, "SIGCONT");
  paused.clear();
});
afterAll(() => mesh?.close());

function pause(part: string): void {
  paused.add(mesh.kill(part, "SIGSTOP"));
}
function resume(part: string): void {
  paused.delete(mesh.kill(part, "SIGCONT"));
}
function nodeOf(plan: PlanDoc, tier: number, name: string) {
  return plan.tiers[tier]?.nodes.find(({ node }) => node === name);
}
async function ok(...args: string[]): Promise<void> {
  const { code, stderr } = await mesh.cli(...args);
  expect(code, stderr).toBe(0);
}

describe("hosts that nobody is there for", () => {
  test("LNK-2: keep what was declared, reconnect without a restart, and what they report meanwhile arrives", async () => {
    const since = (await mesh.ask("events")).next;
    const host = mesh.pid("host-web-1");
    // Or it would start the others again.
    pause("up");
    mesh.kill("controller");
    mesh.kill("nats");

    rmSync(mesh.real("web-1", "etc/web.conf"));
    await eventually(() => expect(mesh.file("web-1", "etc/web.conf")).toBe("hello\n"), { within: 20_000 });
    const [before] = mesh.running("web-1", WEB);
    process.kill(before as number, "SIGKILL");
    await eventually(() => expect(mesh.running("web-1", WEB)).not.toEqual([before]));
    await eventually(async () => expect(await mesh.http(1, WEB_PORT)).toBe("hello from web-1"));
    expect(mesh.running("web-1", WEB)).toHaveLength(1);
    const status = await mesh.cli("status");
    expect(status.code).toBe(4);
    expect(status.stderr.trim().split("\n")).toHaveLength(1);

    resume("up");
    await mesh.converged(undefined, 60_000);
    expect(mesh.pid("host-web-1")).toBe(host);
    await eventually(async () => {
      const { events } = (await mesh.ask("events", { after: since, limit: 1_000 })) as { events: EventDoc[] };
      const told = events.filter(({ node, resource }) => node === "web-1" && resource === "web.server");
      expect(told.map(({ kind }) => kind)).toContain("exit");
    });
  });

  test("LNK-2: a controller whose broker is away says since when, and goes on by itself", async () => {
    const controller = mesh.pid("controller");
    const { http } = await import("../../src/context.ts").then(({ readContext }) =>
      readContext(mesh.context),
    );
    pause("up");
    mesh.kill("nats");
    await eventually(async () => {
      const answer = await fetch(`${http}/readyz`);
      expect(answer.status).toBe(503);
      expect(await answer.text()).toMatch(/link down since \d{4}-/);
    });
    resume("up");
    await mesh.converged(mesh.push(greet("after the link")));
    expect(mesh.pid("controller")).toBe(controller);
  });
});

describe("a node that is observed", () => {
  test("tells every difference, writes nothing, and is no hindrance", async () => {
    const observed = {
      "nodes/web-2.json": { address: `${mesh.subnet}.2`, labels: { role: "web" }, mode: "observe" },
    };
    const before = mesh.file("web-2", "etc/web.conf");
    const commit = mesh.push({ ...greet("only elsewhere"), ...observed });
    await mesh.converged(commit);
    expect(await mesh.stateOf("web-2")).toBe("observed");
    expect(mesh.file("web-2", "etc/web.conf")).toBe(before);
    expect(await mesh.http(1, WEB_PORT)).toBe("only elsewhere from web-1");
    const { differences } = await mesh.json("diff", "web-2");
    expect(differences.map(({ id }: { id: string }) => id)).toContain("web.config");
    const back = { "nodes/web-2.json": { address: `${mesh.subnet}.2`, labels: { role: "web" } } };
    await mesh.converged(mesh.push(back));
    expect(await mesh.http(2, WEB_PORT)).toBe("only elsewhere from web-2");
  });
});

describe("freeze", () => {
  test("holds all sending until unfreeze, loudly", async () => {
    await ok("freeze", "--reason", "a festival");
    const commit = mesh.push(greet("after the festival"));
    await eventually(async () => {
      const plan = await mesh.plan();
      expect(plan).toMatchObject({ commit, state: "waiting" });
      expect(plan.reason).toContain("a festival");
    });
    const status = await mesh.cli("status");
    expect(status.stdout).toMatch(/FROZEN by .*a festival/);
    expect(mesh.file("web-1", "etc/note")).not.toContain("after the festival");
    await ok("unfreeze");
    await mesh.converged(commit);
    expect((await mesh.status()).frozen).toBeNull();
  });

  test("of one node leaves it out, and it catches up after unfreeze though the plan is done", async () => {
    await ok("freeze", "worker-1");
    const commit = mesh.push(greet("without worker-1"));
    await eventually(async () => expect(await mesh.plan()).toMatchObject({ commit, state: "done" }), {
      within: 30_000,
    });
    expect(await mesh.stateOf("worker-1")).toBe("frozen");
    expect(nodeOf(await mesh.plan(), 0, "worker-1")?.state).toBe("skipped");
    expect(mesh.file("worker-1", "etc/note")).toBe("after the festival on worker-1\n");
    await ok("unfreeze", "worker-1");
    await mesh.converged(commit);
    expect(mesh.file("worker-1", "etc/note")).toBe("without worker-1 on worker-1\n");
  });
});

describe("a plan that an operator steers", () => {
  test("stops and goes on with retry", async () => {
    pause("host-store-1");
    const commit = mesh.push(greet("stopped half-way"));
    const plan = await eventually(async () => {
      const latest = await mesh.plan();
      return latest.commit === commit && latest.state === "running" && latest;
    });
    await ok("plans", "stop", String(plan.id));
    await eventually(async () => expect((await mesh.plan(plan.id)).state).toBe("stopped"));
    expect((await mesh.cli("plan", String(plan.id), "--wait")).code).toBe(3);
    resume("host-store-1");
    await ok("plans", "retry", String(plan.id));
    await mesh.converged(commit);
    expect((await mesh.cli("plans", "stop", String(plan.id))).code).toBe(1);
  });

  test("goes on without a node that is skipped, and gives it the rest with the next merge", async () => {
    // One that answers nothing and yet is not silent: it was heard a moment ago.
    pause("host-store-1");
    const commit = mesh.push(greet("without the store"));
    const plan = await eventually(async () => {
      const latest = await mesh.plan();
      return latest.commit === commit && latest;
    });
    await ok("plans", "skip", String(plan.id), "store-1");
    await eventually(async () => expect((await mesh.plan(plan.id)).state).toBe("done"), { within: 30_000 });
    expect(nodeOf(await mesh.plan(plan.id), 1, "store-1")?.state).toBe("skipped");
    expect(await mesh.http(1, WEB_PORT)).toBe("without the store from web-1");
    resume("host-store-1");
    await mesh.converged(mesh.push(greet("with the store")));
    expect(mesh.file("store-1", "etc/note")).toBe("with the store on store-1\n");
  });
});

describe("a node that is away during a merge", () => {
  test("shows offline, does not count as applied, and catches up when it is back, though the plan is done", async () => {
    pause("host-web-2");
    await eventually(async () => expect(await mesh.stateOf("web-2")).toBe("offline"), { within: 20_000 });
    const commit = mesh.push({ ...greet("while web-2 was away") });
    await eventually(async () => expect(await mesh.plan()).toMatchObject({ commit, state: "done" }), {
      within: 30_000,
    });
    const plan = await mesh.plan();
    expect(nodeOf(plan, 0, "web-2")).toMatchObject({ state: "offline", appliedAt: null });
    expect(nodeOf(plan, 2, "web-2")).toMatchObject({ state: "offline", appliedAt: null });
    expect((await mesh.status()).totals).toMatchObject({ nodes: 4, converged: 3, offline: 1 });
    expect((await mesh.cli("status", "--check")).code).toBe(3);
    resume("host-web-2");
    await mesh.converged(commit);
    expect(await mesh.http(2, WEB_PORT)).toBe("while web-2 was away from web-2");
    await eventually(async () => expect(nodeOf(await mesh.plan(), 2, "web-2")?.state).toBe("applied"));
  });

  test("halts nothing when it comes back to a merge that changes only the mesh's own settings", async () => {
    const commit = mesh.push({ "mesh.json": meshFile({ host: { check: "2s" } }) });
    await mesh.converged(commit);
    expect((await mesh.plan()).state).toBe("done");
  });
});
