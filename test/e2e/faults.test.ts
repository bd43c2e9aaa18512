import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { aMesh, type Mesh } from "../support/mesh.ts";
import { WORKER } from "../support/mesh-catalogue.ts";
import { pushThrough } from "../support/mesh-invariants.ts";

vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 });

let mesh: Mesh;
beforeAll(async () => {
  mesh = await aMesh();
  await mesh.converged();
});
afterAll(() => mesh?.close());

describe("a controller that dies", () => {
  test.each([
    ["before a merge is saved as a plan", "merge"],
    ["before the plan's transaction", "work"],
    ["after the plan's transaction", "worked"],
    ["before publishing", "publish"],
    ["after publishing, before it is marked", "published"],
    ["before reports are folded", "fold"],
    ["after reports are folded, before they are acked", "folded"],
  ])("%s: the plan ends right and nothing is sent twice", async (_when, point) => {
    // Armed first: the push itself leads there.
    mesh.arm(point);
    await pushThrough(mesh, `controller ${point}`, () => mesh.died(point));
  });
});

describe("hosts that die", () => {
  test.each([
    ["between the intent to start a process and its start", "supervision:intent"],
    ["right after a process was started", "supervision:spawned"],
    ["in the middle of writing a file", "file-written"],
    ["before a file takes its place", "file-before-rename"],
    ["after a file took its place", "file-renamed"],
    ["before the record is saved", "state-before-save"],
    ["after the record is saved", "state-after-save"],
  ])("%s: each process runs once, each version once", async (_when, point) => {
    mesh.arm(point);
    await pushThrough(mesh, `host ${point}`, () => mesh.died(point));
  });

  test("while a process is being stopped for good: it is gone, and comes back once with its module", async () => {
    const file = "nodes/worker-1.json";
    const node = { address: `${mesh.subnet}.4`, labels: { role: "worker" } };
    mesh.arm("supervision:stopping");
    const removal = mesh.push({ [file]: node });
    await mesh.died("supervision:stopping");
    await mesh.converged(removal);
    expect(mesh.running("worker-1", "opt/worker/worker.sh")).toEqual([]);
    await mesh.converged(mesh.push({ [file]: { ...node, modules: [WORKER.name] } }));
    await pushThrough(mesh, "after the removal", async () => {});
  });
});

describe("`mesh down` whose stopping of workloads dies", () => {
  test("stops them at the second try, and leaves nothing that runs", async () => {
    mesh.arm("supervision:stopping");
    const { code, stderr } = await mesh.down();
    expect(code, stderr).toBe(0);
    await mesh.died("supervision:stopping");
    for (const node of ["web-1", "web-2"]) expect(mesh.running(node, "opt/web/server.mjs")).toEqual([]);
    expect(mesh.running("store-1", "opt/store/server.mjs")).toEqual([]);
    expect(mesh.running("worker-1", "opt/worker/worker.sh")).toEqual([]);
  });
});
