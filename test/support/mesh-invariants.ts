import { readdirSync } from "node:fs";
import { connect } from "nats";
import { expect } from "vitest";
import { eventually } from "./eventually.ts";
import type { Mesh } from "./mesh.ts";
import { greet, STORE_PORT, WEB_PORT } from "./mesh-catalogue.ts";

const SERVERS = [
  { node: "web-1", module: "web", at: 1, port: WEB_PORT },
  { node: "web-2", module: "web", at: 2, port: WEB_PORT },
  { node: "store-1", module: "store", at: 3, port: STORE_PORT },
];
const NODES = ["store-1", "web-1", "web-2", "worker-1"];

/** By node: of the declaration that it is wanted to hold. */
export async function sequences(mesh: Mesh): Promise<Record<string, number>> {
  const rows = await mesh.sql<{ name: string; seq: string }>(
    "SELECT name, wanted_seq AS seq FROM mesh.nodes ORDER BY name",
  );
  return Object.fromEntries(rows.map(({ name, seq }) => [name, Number(seq)]));
}

/** Gives every module another value, does `meanwhile`, and expects the mesh to be whole with that value. */
export async function pushThrough(
  mesh: Mesh,
  note: string,
  meanwhile: () => Promise<unknown>,
  options: { sentOnce?: boolean } = {},
): Promise<void> {
  const before = await sequences(mesh);
  const commit = mesh.push(greet(note));
  await meanwhile();
  await expectWhole(mesh, commit, note);
  const after = await sequences(mesh);
  for (const node of NODES) {
    const rise = after[node]! - before[node]!;
    // Each node is touched in two tiers: what was sent before a crash is sent under the same number after it.
    if (options.sentOnce ?? true) expect(rise, `sequences of ${node}`).toBe(2);
    else expect(rise, `sequences of ${node}`).toBeGreaterThanOrEqual(2);
  }
}

/** Whatever happened: the plan ended right, nothing took effect twice, nothing was lost, nothing is left behind. */
export async function expectWhole(mesh: Mesh, commit: string, note: string): Promise<void> {
  await mesh.converged(commit, 90_000);
  expect(await mesh.plan()).toMatchObject({ commit, state: "done" });
  for (const node of NODES) expect(mesh.file(node, "etc/note"), node).toBe(`${note} on ${node}\n`);
  for (const { node, module, at, port } of SERVERS) {
    expect(mesh.running(node, `opt/${module}/server.mjs`), `copies on ${node}`).toHaveLength(1);
    expect(await mesh.http(at, port)).toBe(`${note} from ${node}`);
    expectEachOnce(mesh, node, `var/lib/${module}/starts`, note);
    expectEachOnce(mesh, node, `var/lib/${module}/announced`, note);
  }
  expect(mesh.running("worker-1", "opt/worker/worker.sh"), "copies on worker-1").toHaveLength(1);
  await expectNothingLeft(mesh);
}

/** One line for each version that ever ran: none ran twice. */
function expectEachOnce(mesh: Mesh, node: string, path: string, note: string): void {
  const lines = (mesh.file(node, path) ?? "").trim().split("\n");
  expect(lines, `${path} of ${node}`).toEqual([...new Set(lines)]);
  expect(lines.at(-1)).toBe(note);
}

async function expectNothingLeft(mesh: Mesh): Promise<void> {
  await eventually(async () => {
    const [locks] = await mesh.sql("SELECT count(*)::int AS n FROM pg_locks WHERE locktype = 'advisory'");
    expect(locks.n, "advisory locks").toBe(0);
    const [open] = await mesh.sql(
      "SELECT count(*)::int AS n FROM mesh.nodes WHERE wanted_seq > published_seq",
    );
    expect(open.n, "unpublished nodes").toBe(0);
    const queued = NODES.flatMap((node) => queueOf(mesh, node));
    expect(queued, "reports that were not taken").toEqual([]);
    const [folded] = await mesh.sql("SELECT seq::int FROM mesh.folded WHERE stream = 'EVENTS'");
    expect(folded.seq, "reports that were not folded").toBe(await lastReport(mesh));
  });
  const [rejected] = await mesh.sql("SELECT count(*)::int AS n FROM mesh.rejected");
  expect(rejected.n, "rejected reports").toBe(0);
}

function queueOf(mesh: Mesh, node: string): string[] {
  return readdirSync(mesh.real(node, "var/lib/mesh-host/reports/queue")).filter((name) =>
    name.endsWith(".json"),
  );
}

async function lastReport(mesh: Mesh): Promise<number> {
  const { username, password, host } = new URL(mesh.broker);
  const connection = await connect({ servers: host, user: username, pass: password });
  try {
    const { state } = await (await connection.jetstreamManager()).streams.info("EVENTS");
    return state.last_seq;
  } finally {
    await connection.close();
  }
}
