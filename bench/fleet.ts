import { aFleet } from "../test/support/fleet.ts";
import { scaled } from "./config.ts";
import { aCentre, askMeanwhile, planDone } from "./support/controller.ts";
import { memoryOf } from "./support/process.ts";
import { BenchRepository, type Files } from "./support/repository.ts";
import { emit } from "./support/row.ts";

/** Every node has two modules of ten resources; a merge of `base` touches them all. */
function fleetCatalogue(nodes: readonly string[], text: string): Files {
  const module = (name: string, content: string) =>
    JSON.stringify({
      name,
      resources: Array.from({ length: 10 }, (_, i) => ({
        id: `file-${i}`,
        type: "file",
        path: `/etc/${name}/${i}.conf`,
        content: [content, "${node:name}"],
      })),
    });
  return {
    "mesh.json": JSON.stringify({ name: "fleet" }),
    "groups/all.json": JSON.stringify({ modules: ["base", "web"] }),
    "modules/base/module.json": module("base", text),
    "modules/web/module.json": module("web", "web"),
    ...Object.fromEntries(
      nodes.map((node, i) => [
        `nodes/${node}.json`,
        JSON.stringify({ address: `10.1.${i >> 8}.${i & 255}` }),
      ]),
    ),
  };
}

async function measure(count: number, reach: number | null): Promise<void> {
  const nodes = Array.from({ length: count }, (_, i) => `h${i}`);
  const repository = new BenchRepository();
  const centre = await aCentre();
  const first = repository.commit(fleetCatalogue(nodes, "first"));
  const fleet = await aFleet({
    url: centre.nats.url,
    nodes,
    publicKey: centre.publicKey,
    connections: 4,
  });
  const controller = centre.start(repository.dir);
  try {
    await planDone(centre, first, { within: 90_000 });
    const stop = askMeanwhile(centre.link, "node", { name: "h0" }, 20);
    const from = performance.now();
    const second = repository.commit({
      "modules/base/module.json": fleetCatalogue([], "second")["modules/base/module.json"] as string,
    });
    await planDone(centre, second, { within: 90_000 });
    const took = performance.now() - from;
    const verbs = await stop();
    const behind = [...fleet.hosts.values()].filter((host) => host.declaration?.commit !== second);
    if (behind.length > 0) throw new Error(`${behind.length} hosts do not hold ${second}`);
    emit({
      row: `${count} simulated hosts, all touched by one merge, to all applied (4 batches)`,
      family: "merge to all applied",
      size: count,
      value: took,
      unit: "ms",
      ...(reach === null ? {} : { reach: { value: reach, of: "value" as const } }),
      note: `verb p99 ${verbs.p99.toFixed(0)} ms of ${verbs.calls}; controller at most ${memoryOf(controller.pid!).peak.toFixed(0)} MiB`,
    });
  } finally {
    await fleet.close();
    await centre.stop();
    repository.remove();
  }
}

await measure(scaled(100), null);
await measure(scaled(1_000), 10_000);
