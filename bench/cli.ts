import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { cleanEnvironment, scale, scaled } from "./config.ts";
import { aMesh, CLI } from "./support/mesh.ts";
import { childCpu } from "./support/process.ts";
import { catalogueFiles, modulePath, moduleText, writeFolder } from "./support/repository.ts";
import { emit, median } from "./support/row.ts";

const RUNS = scale < 1 ? 7 : 15;
const env = cleanEnvironment();

interface Times {
  wall: number;
  cpu: number;
}

function run(args: string[], cwd?: string, codes = [0]): Times {
  const cpuBefore = childCpu();
  const from = performance.now();
  const done = spawnSync(process.execPath, args, { env, cwd, encoding: "utf8", maxBuffer: 1 << 28 });
  const wall = performance.now() - from;
  if (!codes.includes(done.status ?? -1)) throw new Error(`${args.join(" ")}: ${done.stdout}${done.stderr}`);
  return { wall, cpu: childCpu() - cpuBefore };
}

/** In turns with `node -e 0`, so that both meet the same machine. */
function against(runs: number, args: string[], cwd?: string, codes?: number[]) {
  const ours: Times[] = [];
  const bare: Times[] = [];
  for (let i = 0; i < runs; i++) {
    bare.push(run(["-e", "0"]));
    ours.push(run(args, cwd, codes));
  }
  const mean = (times: Times[]) => times.reduce((sum, { cpu }) => sum + cpu, 0) / times.length;
  return {
    value: median(ours.map(({ wall }) => wall)),
    limit: { what: "node -e 0", value: median(bare.map(({ wall }) => wall)) },
    note: `CPU ${mean(ours).toFixed(0)} ms against ${mean(bare).toFixed(0)} ms`,
  };
}

const mesh = aMesh({
  "mesh.json": "{}",
  "nodes/one.json": JSON.stringify({ address: "127.0.0.1", modules: ["base"] }),
  "modules/base/module.json": JSON.stringify({
    name: "base",
    resources: [{ id: "motd", type: "file", path: "/etc/motd", content: ["hello"] }],
  }),
});
try {
  emit({
    row: "mesh status",
    unit: "ms",
    ...against(RUNS, [CLI, "status", "--context", mesh.context]),
    reach: { value: 3, of: "ratio" },
  });
} finally {
  mesh.close();
}

const top = mkdtempSync(join(tmpdir(), "mesh-bench-"));
const git = (...args: string[]) =>
  execFileSync("git", ["-C", top, "-c", "user.name=B", "-c", "user.email=b@example.org", ...args]);
try {
  for (const modules of [scaled(100), scaled(1_000)]) {
    writeFolder(top, catalogueFiles(modules, modules));
    emit({
      row: `mesh check of ${modules} modules on ${modules} nodes`,
      family: "mesh check",
      size: modules,
      unit: "ms",
      ...against(3, [CLI, "check", top], top),
      ...(modules >= 1_000 ? { reach: { value: 1_000, of: "value" as const } } : {}),
    });
  }
  git("init", "-q", "-b", "main");
  git("add", "-A");
  git("commit", "-qm", "first");
  writeFolder(top, { [modulePath(3)]: moduleText(3, "changed") });
  emit({
    row: `mesh preview of one changed module of ${scaled(1_000)}`,
    unit: "ms",
    ...against(3, [CLI, "preview", top, "--against", "HEAD"], top, [0, 3]),
    reach: { value: 1_000, of: "value" },
  });
} finally {
  rmSync(top, { recursive: true, force: true });
}
