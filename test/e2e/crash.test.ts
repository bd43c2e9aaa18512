import { rmSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { eventually } from "../support/eventually.ts";
import { aMesh, isAlive, type Mesh } from "../support/mesh.ts";
import { expectWhole, pushThrough } from "../support/mesh-invariants.ts";

vi.setConfig({ testTimeout: 150_000, hookTimeout: 120_000 });

const SEED = Number(process.env.SEED ?? Math.floor(Math.random() * 1e9));
const PARTS = ["controller", "nats", "postgres", "host-web-1", "host-web-2", "host-store-1", "host-worker-1"];

let mesh: Mesh;
beforeAll(async () => {
  mesh = await aMesh();
  await mesh.converged();
});
afterAll(() => mesh?.close());

describe("kill -9 in the middle of a plan", () => {
  test.each([["controller"], ["host-web-1"], ["nats"], ["postgres"]])(
    "of %s: it is back at once and the plan ends right",
    async (part) => {
      await pushThrough(mesh, `without ${part}`, () => mesh.killed(part));
    },
  );

  test("of the parent of all parts: what runs goes on, and the next `mesh up` takes it over as it is", async () => {
    const before = PARTS.map((part) => mesh.pid(part));
    await pushThrough(mesh, "without a parent", async () => mesh.kill("up"));
    expect(PARTS.map((part) => mesh.pid(part))).toEqual(before);
    mesh.kill("host-web-2");
    const { code, stderr } = await mesh.up();
    expect(code, stderr).toBe(0);
    await eventually(() => isAlive(mesh.pid("host-web-2")));
    const after = PARTS.map((part) => mesh.pid(part));
    expect(after.filter((pid, i) => pid !== before[i])).toHaveLength(1);
    await mesh.killed("host-web-1");
    await mesh.converged();
  });

  test(`at random moments, SEED=${SEED}`, async () => {
    const random = seeded(SEED);
    for (let round = 1; round <= 3; round++) {
      await pushThrough(
        mesh,
        `round ${round} of ${SEED}`,
        async () => {
          for (let kills = 1 + Math.floor(random() * 3); kills > 0; kills--) {
            await delay(random() * 1_500);
            await mesh.killed(PARTS[Math.floor(random() * PARTS.length)]!);
          }
        },
        // A publication whose answer was lost with the broker may stand under a number that was not marked.
        { sentOnce: true },
      );
    }
  });
});

describe("a broker that lost its store", () => {
  test("is given everything again, and nothing is removed from any node", async () => {
    await pushThrough(mesh, "before the loss", async () => {});
    const commit = mesh.git("rev-parse", "HEAD");
    const running = mesh.running("web-1", "opt/web/server.mjs");
    // Where it keeps its streams is not there for one moment between its end and its next start.
    mesh.kill("nats");
    rmSync(join(mesh.dir, "jetstream"), { recursive: true, force: true });
    await eventually(async () => expect(await declarations()).toBe(4), { within: 60_000, every: 100 });
    await expectWhole(mesh, commit, "before the loss");
    expect(mesh.running("web-1", "opt/web/server.mjs")).toEqual(running);
    await pushThrough(mesh, "after the loss", async () => {});
  });
});

/** How many nodes have a key at the broker. */
async function declarations(): Promise<number> {
  const { connect } = await import("nats");
  const { username, password, host } = new URL(mesh.broker);
  const connection = await connect({ servers: host, user: username, pass: password });
  try {
    const { state } = await (await connection.jetstreamManager()).streams.info("KV_declarations");
    return state.messages;
  } finally {
    await connection.close();
  }
}

/** mulberry32 */
function seeded(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296;
  };
}
