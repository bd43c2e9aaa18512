import { spawn } from "node:child_process";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { connectBroker } from "../../../src/io/nats.ts";
import { findNatsServer, natsConfig, startNats } from "../../../src/up/nats.ts";
import { eventually } from "../../support/eventually.ts";
import { KEEPER } from "../../support/nats.ts";

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "mesh-up-nats-"));
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

function aProgram(says: string): string {
  const bin = join(dir, "bin");
  mkdirSync(bin, { recursive: true });
  writeFileSync(join(bin, "nats-server"), `#!/bin/sh\n${says}\n`);
  chmodSync(join(bin, "nats-server"), 0o755);
  return bin;
}
const alive = (pid: number) => {
  try {
    process.kill(pid, 0);
    return !readFileSync(`/proc/${pid}/stat`, "utf8").includes(") Z ");
  } catch {
    return false;
  }
};

it("nats-server is found beyond the PATH, and one that is too old is passed over", async () => {
  const old = aProgram("echo nats-server: v2.8.4");
  const found = await findNatsServer(old);
  expect(found.file).not.toContain(dir);
  expect(Number(found.version.split(".")[1])).toBeGreaterThanOrEqual(9);
});

it("a started server has JetStream and one credential, keeps its port and streams over a restart, and stops", async () => {
  const { file: binary } = await findNatsServer("");
  const first = await startNats({ dir, binary, user: "mesh", pass: 'a"b$c\\d' });
  expect(statSync(join(dir, "nats.conf")).mode & 0o777).toBe(0o600);
  const broker = connectBroker({ url: first.url, name: "test", spread: 200 });
  await broker.connected({ within: 5_000 });
  await (await broker.manager()).streams.add({ name: "KEPT", subjects: ["kept"] });
  await first.stop();
  expect(alive(first.pid)).toBe(false);
  const again = await startNats({ dir, binary, port: first.port, user: "mesh", pass: 'a"b$c\\d' });
  expect(again.url).toBe(first.url);
  await broker.connected({ within: 5_000 });
  expect((await (await broker.manager()).streams.info("KEPT")).config.name).toBe("KEPT");
  await broker.close();
  await again.stop();
});

it("a server that cannot start is an error that names why and its log", async () => {
  const bin = aProgram("echo no space left >&2; exit 3");
  await expect(
    startNats({ dir, binary: join(bin, "nats-server"), user: "u", pass: "hidden-word" }),
  ).rejects.toMatchObject({
    code: "nats-server-failed",
    message: expect.stringMatching(/exit code 3.*nats\.log/),
  });
  expect(readFileSync(join(dir, "nats.log"), "utf8")).toContain("no space left");
});

it("BLD-2: a test run that is killed leaves no server and no folder behind", async () => {
  const { file } = await findNatsServer("");
  const place = join(dir, "server");
  mkdirSync(place);
  const config = join(place, "nats.conf");
  writeFileSync(config, natsConfig({ port: -1, storeDir: join(place, "store"), user: "u", pass: "p" }));
  // As a test process does it: the keeper in its own session, on the other end of a pipe.
  const program = `const { spawn } = require("node:child_process");
    const child = spawn("sh", ["-c", ${JSON.stringify(KEEPER)}, "keeper", ${JSON.stringify(file)}, ${JSON.stringify(config)}, ${JSON.stringify(place)}],
      { detached: true, stdio: ["pipe", "pipe", "inherit"] });
    child.stdin.write("start\\n");
    child.stdout.on("data", (pid) => process.stdout.write(pid));`;
  const run = spawn(process.execPath, ["-e", program], { stdio: ["ignore", "pipe", "inherit"] });
  const pid = await new Promise<number>((resolve) =>
    run.stdout.once("data", (text) => resolve(Number(text))),
  );
  expect(alive(pid)).toBe(true);
  run.kill("SIGKILL");
  await eventually(() => !alive(pid) && !existsSync(place));
});
