import { execFileSync } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { NodeDoc, StatusDoc } from "../../src/cli/documents.ts";
import { eventually } from "../support/eventually.ts";
import { runMesh } from "../support/mesh-program.ts";

let top: string;
let dir: string;
let env: NodeJS.ProcessEnv;
const PARTS = ["postgres", "nats", "controller", "host-one", "host-two.x"];

/** A catalogue of two nodes with a service each, on addresses of its own. */
function writeCatalogue(folder: string): void {
  for (const path of ["nodes", "groups", "modules/clock"]) mkdirSync(join(folder, path), { recursive: true });
  const put = (path: string, value: unknown) =>
    writeFileSync(join(folder, path), JSON.stringify(value, null, 2));
  put("mesh.json", { name: "try", host: { check: "500ms", heartbeat: "2s", handover: { minUp: "500ms" } } });
  put("nodes/one.json", { address: "127.0.9.11" });
  put("nodes/two.x.json", { address: "127.0.9.12" });
  put("groups/all.json", { modules: ["clock"] });
  put("modules/clock/module.json", {
    name: "clock",
    resources: [
      { id: "note", type: "file", path: "/etc/note", content: "${node:name}\n" },
      { id: "tick", type: "process", name: "tick", command: ["sleep", "3600"] },
    ],
  });
}

const pidOf = (part: string) => Number(readFileSync(join(dir, "run", `${part}.pid`), "utf8"));
const alive = (pid: number) => {
  try {
    // A killed process that nobody waited for yet is no longer alive.
    return !/^\d+ \(.*\) [ZX]/.test(readFileSync(`/proc/${pid}/stat`, "utf8"));
  } catch {
    return false;
  }
};
const kill = (pid: number) => process.kill(pid, "SIGKILL");
const json = async <T>(...args: string[]): Promise<T> =>
  JSON.parse((await runMesh([...args, "--json"], { env })).stdout);
const settled = () =>
  eventually(async () => expect((await runMesh(["status", "--check"], { env })).code).toBe(0), {
    within: 60_000,
    every: 200,
  });
const workloads = () =>
  readdirSync("/proc")
    .filter((entry) => /^\d+$/.test(entry))
    .filter((entry) => {
      try {
        const text = readFileSync(`/proc/${entry}/cmdline`, "utf8");
        return text.includes(join(dir, "nodes"));
      } catch {
        return false;
      }
    });

beforeAll(async () => {
  top = mkdtempSync(join(tmpdir(), "mesh-up-"));
  dir = join(top, "mesh");
  env = { MESH_CONTEXT: join(dir, "context.json") };
  writeCatalogue(join(top, "catalogue"));
  const up = await runMesh(["up", "--catalogue", join(top, "catalogue"), "--dir", dir, "--detach"]);
  expect(up, up.stderr).toMatchObject({ code: 0 });
  expect(up.stdout).toContain(`git clone ${join(dir, "catalogue.git")}`);
}, 120_000);

afterAll(async () => {
  if (existsSync(join(dir, "up.json"))) await runMesh(["down", "--dir", dir, "--purge"]);
  rmSync(top, { recursive: true, force: true });
}, 120_000);

test("mesh up --detach returns with every part running and a context only its owner reads", async () => {
  for (const part of PARTS) expect(alive(pidOf(part)), part).toBe(true);
  expect(alive(pidOf("up"))).toBe(true);
  expect(statSync(join(dir, "context.json")).mode & 0o777).toBe(0o600);
  await settled();
  const node = await json<NodeDoc>("node", "one");
  expect(node.resources.map((one) => one.id)).toContain("clock.tick");
  expect(readFileSync(join(dir, "nodes/one/root/etc/note"), "utf8")).toBe("one\n");
}, 90_000);

test("a second mesh up says that it is up already", async () => {
  const again = await runMesh(["up", "--dir", dir, "--detach"]);
  expect(again).toMatchObject({ code: 0, stderr: "" });
  expect(again.stdout).toContain("is up already");
});

test("a mesh up that names another catalogue says that it is not read", async () => {
  const other = join(top, "other");
  mkdirSync(join(other, "nodes"), { recursive: true });
  const again = await runMesh(["up", "--catalogue", other, "--dir", dir, "--detach"]);
  expect(again.code).toBe(0);
  expect(again.stderr).toContain(`${other} is not read`);
  const same = await runMesh(["up", "--catalogue", join(top, "catalogue"), "--dir", dir, "--detach"]);
  expect(same).toMatchObject({ code: 0, stderr: "" });
});

test("a part that is killed is started again, and the workloads are the same processes", async () => {
  const tick = async () =>
    (await json<NodeDoc>("node", "one")).resources.find((one) => one.id === "clock.tick")?.process?.pid;
  const before = await tick();
  for (const part of PARTS) {
    const pid = pidOf(part);
    kill(pid);
    await eventually(() => expect(pidOf(part) !== pid && alive(pidOf(part))).toBe(true), { within: 20_000 });
  }
  await settled();
  expect(await tick()).toBe(before);
}, 120_000);

test("after the parent is killed, mesh up adopts what runs and starts what does not", async () => {
  const controller = pidOf("controller");
  const nats = pidOf("nats");
  kill(pidOf("up"));
  kill(nats);
  const up = await runMesh(["up", "--dir", dir, "--detach"]);
  expect(up, up.stderr).toMatchObject({ code: 0 });
  expect(pidOf("controller")).toBe(controller);
  expect(pidOf("nats")).not.toBe(nats);
  await settled();
}, 120_000);

test("after everything is killed, mesh up starts all again", async () => {
  for (const part of ["up", ...PARTS]) kill(pidOf(part));
  const up = await runMesh(["up", "--dir", dir, "--detach"]);
  expect(up, up.stderr).toMatchObject({ code: 0 });
  await settled();
}, 120_000);

test("hosts start with new nodes and end with retired ones", async () => {
  const work = join(top, "work");
  const git = (...args: string[]) =>
    execFileSync("git", ["-c", "user.name=t", "-c", "user.email=t@t", ...args], { cwd: work, stdio: "pipe" });
  execFileSync("git", ["clone", "-q", join(dir, "catalogue.git"), work], { stdio: "pipe" });
  writeFileSync(join(work, "nodes/three.json"), '{ "address": "127.0.9.13" }');
  git("add", "-A");
  git("commit", "-q", "-m", "three");
  git("push", "-q", "origin", "HEAD:main");
  await eventually(() => expect(alive(pidOf("host-three"))).toBe(true), { within: 30_000 });
  await settled();

  writeFileSync(join(work, "nodes/three.json"), '{ "address": "127.0.9.13", "retire": true }');
  git("commit", "-q", "-am", "retire three\n\nMesh-Confirm: emptied three");
  git("push", "-q", "origin", "HEAD:main");
  await eventually(() => expect(existsSync(join(dir, "run/host-three.pid"))).toBe(false), { within: 60_000 });
  const status = await json<StatusDoc>("status");
  expect(status.nodes.find((node) => node.name === "three")?.state).toBe("retired");
}, 150_000);

test("mesh down stops every part and every workload, and --purge leaves nothing", async () => {
  const pids = ["up", ...PARTS].map(pidOf);
  expect(workloads().length).toBeGreaterThan(0);
  const down = await runMesh(["down", "--dir", dir]);
  expect(down, down.stderr).toMatchObject({ code: 0 });
  const status = await runMesh(["status", "--context", join(dir, "context.json")]);
  expect(status).toMatchObject({
    code: 4,
    stderr: expect.stringContaining(`start it with \`mesh up --dir ${dir}\``),
  });
  expect(pids.filter(alive)).toEqual([]);
  expect(workloads()).toEqual([]);
  expect(existsSync(join(dir, "catalogue.git"))).toBe(true);
  expect(await runMesh(["down", "--dir", dir, "--purge"])).toMatchObject({ code: 0 });
  expect(existsSync(dir)).toBe(false);
  expect(await runMesh(["down", "--dir", dir])).toMatchObject({ code: 1 });
}, 120_000);

test.each([
  ["store", "postgres://u:hidden@127.0.0.1:1/x"],
  ["broker", "nats://u:hidden@127.0.0.1:1"],
])("an existing %s that is not there makes mesh up exit 4 with one line that names it", async (part, url) => {
  const up = await runMesh([
    ...["up", "--catalogue", join(top, "catalogue"), "--dir", join(top, "away")],
    ...[`--${part}`, url, "--detach"],
  ]);
  expect(up).toMatchObject({ code: 4, stdout: "" });
  expect(up.stderr).toContain("127.0.0.1:1");
  expect(up.stderr).not.toContain("hidden");
  expect(up.stderr.trim().split("\n")).toHaveLength(1);
  expect(existsSync(join(top, "away", "up.json"))).toBe(false);
});

test("a folder without a catalogue is refused with what would be one, and nothing stays behind", async () => {
  const empty = join(top, "empty");
  mkdirSync(empty);
  const up = await runMesh(["up", "--catalogue", empty, "--dir", join(top, "none"), "--detach"]);
  expect(up.code).toBe(1);
  expect(up.stderr).toContain("holds no catalogue");
  expect(existsSync(join(top, "none", "up.json"))).toBe(false);
});
