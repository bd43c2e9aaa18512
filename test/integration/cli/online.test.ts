import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { meshError } from "../../../src/errors.ts";
import { statusOf, stubController } from "../../support/controller-stub.ts";
import { runMesh, shell, startMesh } from "../../support/mesh-program.ts";
import { startTestNats, type TestNats } from "../../support/nats.ts";

let nats: TestNats;
let stub: Awaited<ReturnType<typeof stubController>>;
let env: NodeJS.ProcessEnv;
const large = statusOf(3_000);

beforeAll(async () => {
  nats = await startTestNats();
  stub = await stubController(nats, {
    status: () => large,
    nodes: ({ labels }: { labels: object }) => ({ nodes: [], labels }),
    plan: ({ id }: { id: number }) => ({
      id,
      commit: "c",
      base: null,
      state: "halted",
      reason: "why",
      createdAt: new Date(0),
      tiers: [],
    }),
    "web-1/logs": ({ after }: { after?: number }) => ({ lines: after ? [] : ["one", "two"], position: 1 }),
    node: ({ name }: { name: string }) => {
      throw new NoSuchNode({ node: name });
    },
    freeze: () => {
      throw new Error("not today");
    },
  });
  env = { MESH_CONTEXT: stub.context };
});
afterAll(async () => {
  await stub?.close();
  await nats?.stop();
});

class NoSuchNode extends meshError(
  "node-unknown",
  "stalled",
  (f: { node: string }) => `there is no node "${f.node}"`,
) {}

test("a verb for a node that nobody declares says so, instead of waiting for its host", async () => {
  const ran = await runMesh(["restart", "nope", "web.server"], { env });
  expect(ran).toMatchObject({ code: 1, stdout: "", stderr: 'mesh: there is no node "nope"\n' });
});

test("CLI-1: a large document has the same bytes in a file and through a pipe", async () => {
  const file = join(nats.dir, "status.json");
  const ran = await shell(
    `mesh status --json > "${file}"; echo $?; mesh status --json | cat | cmp - "${file}"; echo $?`,
    { env },
  );
  expect(ran).toMatchObject({ stdout: "0\n0\n", stderr: "" });
  const { stdout } = await shell(`cat "${file}"`);
  expect(JSON.parse(stdout)).toEqual(large);
});

test("CLI-1: an error exits with the same code through a pipe, with nothing on stdout", async () => {
  const ran = await shell("mesh freeze --json | cat; echo ${PIPESTATUS[0]}", { env });
  expect(ran.stdout).toBe("1\n");
  expect(ran.stderr.trim()).toContain("not today");
});

test("CLI-4: logs -f into head ends at once and quietly, though no further line comes", async () => {
  const ran = await shell("mesh logs web-1 web.server -f | head -1", { env });
  expect(ran).toMatchObject({ code: 0, stdout: "one\n", stderr: "" });
});

test("CLI-4: status into a reader that does not read is quiet", async () => {
  const ran = await shell("mesh status 2>&1 | true", { env });
  expect(ran).toMatchObject({ code: 0, stdout: "", stderr: "" });
});

test("CLI-4: a full disk behind > is one line and exit 1, no trace", async () => {
  for (const command of ["mesh status", "mesh status --json", "mesh --help"]) {
    const ran = await shell(`${command} > /dev/full`, { env });
    expect(ran, command).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/^mesh: stdout: ENOSPC.*\n$/),
    });
  }
});

test("CLI-4: a closed terminal ends a following command", async () => {
  const child = startMesh(["logs", "web-1", "web.server", "-f"], { env });
  await new Promise((seen) => child.stdout?.once("data", seen));
  child.kill("SIGHUP");
  const signal = await new Promise((ended) => child.once("exit", (_code, by) => ended(by)));
  expect(signal).toBe("SIGHUP");
});

test("status --watch --json prints one document a line, and one only while nothing changes", async () => {
  const ran = await shell("mesh status --watch --json | head -1 | wc -l", { env });
  expect(ran.stdout.trim()).toBe("1");
});

test("plan --wait exits 3 at once when the plan is halted", async () => {
  const ran = await runMesh(["plan", "7", "--wait", "--json"], { env });
  expect(ran).toMatchObject({ code: 3, stderr: "" });
  expect(JSON.parse(ran.stdout)).toMatchObject({ id: 7, state: "halted" });
});

test("status --check exits 0 when all is well", async () => {
  expect(await runMesh(["status", "--check"], { env })).toMatchObject({ code: 0 });
});

test("labels are passed on", async () => {
  const ran = await runMesh(["nodes", "--label", "role=web", "--json"], { env });
  expect(JSON.parse(ran.stdout).labels).toEqual({ role: "web" });
});

test("an absent broker makes every command exit 4 with one line that names it and no credential", async () => {
  const context = join(nats.dir, "away.json");
  writeFileSync(context, JSON.stringify({ broker: "nats://mesh:hidden@127.0.0.1:1" }));
  const ran = await runMesh(["status", "--context", context]);
  expect(ran).toMatchObject({ code: 4, stdout: "" });
  expect(ran.stderr.trim().split("\n")).toHaveLength(1);
  expect(ran.stderr).toContain("127.0.0.1:1");
  expect(ran.stderr).not.toContain("hidden");
});

test("a broker without a controller makes a command exit 4 with one line that names it", async () => {
  const empty = await startTestNats();
  try {
    const context = join(empty.dir, "context.json");
    writeFileSync(context, JSON.stringify({ broker: empty.url }));
    const ran = await runMesh(["status", "--context", context]);
    expect(ran).toMatchObject({ code: 4, stdout: "" });
    expect(ran.stderr).toMatch(/controller/);
    expect(ran.stderr.trim().split("\n")).toHaveLength(1);
  } finally {
    await empty.stop();
  }
});
