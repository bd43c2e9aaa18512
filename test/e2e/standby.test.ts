import { type ChildProcess, spawn } from "node:child_process";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { eventually } from "../support/eventually.ts";
import { aMesh, type Mesh } from "../support/mesh.ts";
import { greet } from "../support/mesh-catalogue.ts";
import { expectWhole } from "../support/mesh-invariants.ts";
import { PROGRAMS } from "../support/mesh-program.ts";

vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 });

let mesh: Mesh;
let second: ChildProcess;
beforeAll(async () => {
  mesh = await aMesh();
  await mesh.converged();
  const args = [join(PROGRAMS, "mesh-controller.js"), "serve", "--context", mesh.context, "--http", "0"];
  second = spawn(process.execPath, args, { stdio: "ignore", cwd: mesh.top });
});
afterAll(async () => {
  second?.kill("SIGKILL");
  // A test that failed may have left it paused.
  mesh?.kill("up", "SIGCONT");
  await mesh?.close();
});

async function active(): Promise<string | undefined> {
  return (await mesh.status()).controllers.find(({ role }) => role === "active")?.id;
}

test("a second controller stands by, takes over when the active one is killed, and hands back when it is stopped", async () => {
  await eventually(async () => expect((await mesh.status()).controllers).toHaveLength(2), { within: 20_000 });
  const first = await active();
  expect(first).toContain(`-${mesh.pid("controller")}-`);

  const commit = mesh.push(greet("over the takeover"));
  // Started again at once, the killed one might be the first to ask for the seat.
  mesh.kill("up", "SIGSTOP");
  mesh.kill("controller");
  await eventually(async () => expect(await active()).toContain(`-${second.pid}-`), { within: 30_000 });
  mesh.kill("up", "SIGCONT");
  await expectWhole(mesh, commit, "over the takeover");

  const ended = new Promise<number | null>((done) => second.once("exit", (code) => done(code)));
  second.kill("SIGTERM");
  expect(await ended).toBe(0);
  const next = mesh.push(greet("handed back"));
  await eventually(async () => expect(await active()).toContain(`-${mesh.pid("controller")}-`), {
    within: 20_000,
  });
  await expectWhole(mesh, next, "handed back");
  expect(await active()).toContain(`-${mesh.pid("controller")}-`);
  // The killed one is listed until it was not heard for 10 s.
  await eventually(async () => expect((await mesh.status()).controllers).toHaveLength(1), { within: 20_000 });
});
