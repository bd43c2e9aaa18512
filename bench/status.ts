import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { statusOf, stubController } from "../test/support/controller-stub.ts";
import { startTestNats } from "../test/support/nats.ts";

const RUNS = 30;
const LIMIT = 3;

/** The controller answers in a process of its own in real life, so this one must not be blocked while `mesh` runs. */
async function timed(args: string[], env: NodeJS.ProcessEnv): Promise<number> {
  const { spawn } = await import("node:child_process");
  const start = performance.now();
  const child = spawn(process.execPath, args, { env, stdio: "ignore" });
  const code = await new Promise((done) => child.once("exit", done));
  if (code !== 0) throw new Error(`${args.join(" ")} ended with ${code}`);
  return performance.now() - start;
}

const median = (times: number[]) => times.sort((a, b) => a - b)[Math.floor(times.length / 2)] as number;
const round = (ms: number) => Math.round(ms * 10) / 10;

const nats = await startTestNats();
const stub = await stubController(nats, { status: () => statusOf(4) });
try {
  const env = { PATH: process.env.PATH, MESH_CONTEXT: stub.context };
  const mesh = join(process.env.MESH_DIST ?? "dist", "mesh.js");
  spawnSync(process.execPath, [mesh, "--version"]);
  const bare: number[] = [];
  const status: number[] = [];
  // In turns, so that whatever else the machine does meets both.
  for (let i = 0; i < RUNS; i++) {
    bare.push(await timed(["-e", "0"], env));
    status.push(await timed([mesh, "status"], env));
  }
  const [limitMs, ms] = [median(bare), median(status)];
  const row = {
    row: "mesh status",
    ms: round(ms),
    limit: "node -e 0",
    limitMs: round(limitMs),
    ratio: round(ms / limitMs),
    atMost: LIMIT,
  };
  console.log(JSON.stringify(row));
} finally {
  await stub.close();
  await nats.stop();
}
