import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { eventually } from "../support/eventually.ts";
import { aMesh, type Mesh } from "../support/mesh.ts";
import { greet, STORE_PORT, WEB_PORT } from "../support/mesh-catalogue.ts";

vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 });

let mesh: Mesh;
beforeAll(async () => {
  mesh = await aMesh();
  await mesh.converged();
});
afterAll(() => mesh?.close());

const BROKEN = {
  "modules/web/module.json": {
    name: "web",
    tier: 7,
    colour: "red",
    settings: { greeting: "hello" },
    resources: [{ id: "config", type: "file", path: "etc/web.conf", content: "x", mode: 644 }],
  },
  "nodes/web-1.json": { address: "127.0.0.1", modules: ["wep"] },
};

describe("a push to a mesh of four hosts", () => {
  test("goes through the tiers in order, and what runs serves the new value", async () => {
    const commit = mesh.push(greet("second"));
    const waited = await mesh.cli("plan", "latest", "--wait", "--json");
    expect(waited.code, waited.stderr).toBe(0);
    const plan = JSON.parse(waited.stdout);
    expect(plan).toMatchObject({ commit, state: "done", reason: null });
    expect(plan.tiers.map((tier: { state: string }) => tier.state)).toEqual(["done", "done", "done"]);
    expectTiersInOrder(plan);
    await mesh.converged(commit);
    expect(await mesh.http(1, WEB_PORT)).toBe("second from web-1");
    expect(await mesh.http(2, WEB_PORT)).toBe("second from web-2");
    expect(await mesh.http(3, STORE_PORT)).toBe("second from store-1");
    expect(mesh.file("worker-1", "etc/note")).toBe("second on worker-1\n");
    expect((await mesh.cli("status", "--check")).code).toBe(0);
  });

  test("that changes nothing makes a done plan with skipped tiers, and advances every node's commit unsent", async () => {
    const before = await mesh.ask("node", { name: "web-1" });
    const commit = mesh.push({ "README.md": "for people" });
    const plan = await mesh.plan();
    expect(plan).toMatchObject({ commit, state: "done" });
    expect(plan.tiers.map(({ state, nodes }) => [state, nodes.length])).toEqual([
      ["skipped", 0],
      ["skipped", 0],
      ["skipped", 0],
    ]);
    await mesh.converged(commit);
    const after = await mesh.node("web-1");
    expect(after.commit).toBe(commit);
    expect(after.declared.sequence).toBe(before.declared.sequence);
    expect(after.revision).toBe(before.revision);
  });

  test("twenty times in a second coalesces to the newest", async () => {
    const first = await mesh.plan();
    let tip = "";
    for (let i = 1; i <= 20; i++) {
      tip = mesh.push(greet(`burst-${i}`));
      await delay(1);
    }
    await mesh.converged(tip);
    expect(await mesh.http(1, WEB_PORT)).toBe("burst-20 from web-1");
    const { plans } = await mesh.ask("plans");
    const made = plans.filter(({ id }: { id: number }) => id > first.id);
    expect(made.filter(({ state }: { state: string }) => state === "done")).toHaveLength(1);
    expect(made.every(({ state }: { state: string }) => state === "done" || state === "superseded")).toBe(
      true,
    );
  });
});

describe("a push while the plan before it is halted", () => {
  test("supersedes it, and what did not work is mended", async () => {
    const broken = mesh.push({ "modules/web/server.mjs": "process.exit(3);\n" });
    const halted = await eventually(
      async () => {
        const plan = await mesh.plan();
        return plan.commit === broken && plan.state === "halted" && plan;
      },
      { within: 60_000, every: 100 },
    );
    const { code } = await mesh.cli("plan", String(halted.id), "--wait");
    expect(code).toBe(3);
    expect(halted.reason).toContain("mesh plans retry");
    expect(halted.tiers[2]?.nodes).toMatchObject([
      { node: "web-1", batch: 1, state: "failed" },
      { node: "web-2", state: "pending" },
    ]);
    expect(await mesh.http(2, WEB_PORT)).toBe("burst-20 from web-2");

    mesh.git("revert", "--no-edit", "HEAD");
    const fix = mesh.push(greet("mended"));
    await mesh.converged(fix);
    expect((await mesh.plan(halted.id)).state).toBe("superseded");
    expect(mesh.file("web-1", "etc/note")).toBe("mended on web-1\n");
  });
});

describe("a commit with problems", () => {
  test("is refused whole: all problems are listed, the last good commit stays, and the fix goes out", async () => {
    const good = mesh.git("rev-parse", "HEAD");
    const sequence = (await mesh.node("web-1")).declared.sequence;
    const bad = mesh.push(BROKEN);
    const latest = await mesh.cli("plan", "latest");
    expect(latest.code).toBe(1);
    expect(latest.stderr).toContain("modules/web/module.json");
    expect(latest.stderr).toContain("nodes/web-1.json");

    const status = await mesh.status();
    expect(status.catalogue).toMatchObject({ commit: bad, deployed: good });
    const files = new Set(status.catalogue.problems.map(({ file }) => file));
    expect(files).toEqual(new Set(["modules/web/module.json", "nodes/web-1.json"]));
    expect(status.catalogue.problems.length).toBeGreaterThanOrEqual(4);
    expect(status.catalogue.problems.every(({ line, column }) => line > 0 && column > 0)).toBe(true);
    expect((await mesh.cli("status", "--check")).code).toBe(3);
    expect((await mesh.node("web-1")).declared.sequence).toBe(sequence);
    expect(await mesh.http(1, WEB_PORT)).toBe("mended from web-1");

    mesh.git("revert", "--no-edit", "HEAD");
    const fix = mesh.push(greet("fixed"));
    await mesh.converged(fix);
    expect(await mesh.http(2, WEB_PORT)).toBe("fixed from web-2");
  });
});

interface Rolled {
  tiers: Array<{ nodes: Array<{ node: string; sentAt: string; appliedAt: string }> }>;
}

function expectTiersInOrder({ tiers }: Rolled): void {
  const nodes = tiers.map((tier) => tier.nodes.map(({ node }) => node).sort());
  expect(nodes).toEqual([
    ["store-1", "web-1", "web-2", "worker-1"],
    ["store-1"],
    ["web-1", "web-2", "worker-1"],
  ]);
  for (const [t, tier] of tiers.entries()) {
    if (t === 0) continue;
    const before = Math.max(...tiers[t - 1]!.nodes.map(({ appliedAt }) => Date.parse(appliedAt)));
    const first = Math.min(...tier.nodes.map(({ sentAt }) => Date.parse(sentAt)));
    expect(first).toBeGreaterThanOrEqual(before);
  }
}
