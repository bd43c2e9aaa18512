import { readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { linkTo } from "../src/cli/link.ts";
import { readContext } from "../src/context.ts";
import { scale } from "./config.ts";
import { planDone } from "./support/controller.ts";
import { aMesh, bareTwin, fsyncTime } from "./support/mesh.ts";
import { cpuOf, memoryOf, pssOf } from "./support/process.ts";
import { emit, median } from "./support/row.ts";

const PUSHES = scale < 1 ? 7 : 21;
const REST_MS = scale < 1 ? 5_000 : 20_000;
const PROCESSES = 10;

const base = (text: string) => ({
  "modules/base/module.json": JSON.stringify({
    name: "base",
    resources: [{ id: "motd", type: "file", path: "/etc/motd", content: [text] }],
  }),
});
const sleepers = JSON.stringify({
  name: "sleepers",
  resources: Array.from({ length: PROCESSES }, (_, i) => ({
    id: `sleeper-${i}`,
    type: "process",
    name: `sleeper-${i}`,
    command: ["/bin/sleep", "100000"],
  })),
});

const mesh = aMesh({
  "mesh.json": JSON.stringify({ name: "bench", host: { handover: { minUp: "1s" } } }),
  "nodes/one.json": JSON.stringify({ address: "127.0.0.1", modules: ["base", "sleepers"] }),
  "modules/sleepers/module.json": sleepers,
  ...base("first"),
});
const twin = bareTwin(mesh);
const link = await linkTo(readContext(mesh.context).broker as string, "bench");
try {
  await planDone({ link }, mesh.git("rev-parse", "HEAD"), { within: 60_000 });
  await pushes();
  await atRest();
} finally {
  await link.close();
  twin.remove();
  mesh.close();
}

/** From the start of `git push` to the plan that the controller calls done; and when the file on disk was the new one. */
async function pushes(): Promise<void> {
  const file = join(mesh.dir, "nodes/one/root/etc/motd");
  const took: number[] = [];
  const onDisk: number[] = [];
  const alone: number[] = [];
  const fsyncs: number[] = [];
  for (let i = 0; i < PUSHES; i++) {
    mesh.write(base(`push ${i}`));
    mesh.git("commit", "-qam", `push ${i}`);
    alone.push(twin.push());
    fsyncs.push(fsyncTime(mesh.dir));
    const commit = mesh.git("rev-parse", "HEAD");
    const from = performance.now();
    mesh.git("push", "-q", "origin", "HEAD:main");
    while (readFileSync(file, "utf8").trim() !== `push ${i}`) await delay(1);
    onDisk.push(performance.now() - from);
    await planDone({ link }, commit, { within: 30_000, every: 3 });
    took.push(performance.now() - from);
    await delay(100);
  }
  emit({
    row: "push to applied: one node, one file changed (with the time of git push)",
    value: median(took),
    unit: "ms",
    limit: { what: "git push to a repository nobody watches", value: median(alone) },
    reach: { value: 300, of: "value" },
    note: `on disk after ${median(onDisk).toFixed(0)} ms; an fsync takes ${median(fsyncs).toFixed(1)} ms, ${took.length} pushes`,
  });
}

async function atRest(): Promise<void> {
  const pid = mesh.pid("host-one");
  await delay(2_000);
  const before = cpuOf(pid);
  await delay(REST_MS);
  const share = ((cpuOf(pid) - before) / REST_MS) * 100;
  emit({
    row: `host at rest with ${PROCESSES} processes: memory`,
    value: memoryOf(pid).rss,
    unit: "MiB",
    reach: { value: 80, of: "value" },
    note: `at most ${memoryOf(pid).peak.toFixed(0)} MiB`,
  });
  emit({
    row: `host at rest with ${PROCESSES} processes: CPU`,
    value: share,
    unit: "% of a core",
    reach: { value: 0.5, of: "value" },
  });
  const parents = parentsOf(join(mesh.dir, "nodes/one/root"));
  if (parents.length > 0)
    emit({
      row: "what a supervised process costs beside itself (PSS of its parent)",
      value: median(parents.map(pssOf)),
      unit: "KiB",
      reach: { value: 512, of: "value" },
      note: `${parents.length} parents`,
    });
}

/** The `sh` parents of the processes below a root: they are the sleepers' parents. */
function parentsOf(root: string): number[] {
  const status = JSON.parse(readFileSync(join(root, "var/lib/mesh-host/status.json"), "utf8")) as {
    resources: Array<{ process: { pid: number | null } | null }>;
  };
  const pids = status.resources.flatMap(({ process }) => (process?.pid ? [process.pid] : []));
  return pids.map((pid) => Number(/^PPid:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]));
}
