import { setTimeout as delay } from "node:timers/promises";
import { publishedKeys } from "../src/declaration/publish.ts";
import { connectBroker } from "../src/io/nats.ts";
import { aFleet } from "../test/support/fleet.ts";
import { scaled } from "./config.ts";
import { aCentre, askMeanwhile } from "./support/controller.ts";
import { cpuOf, memoryOf } from "./support/process.ts";
import { BenchRepository, catalogueFiles } from "./support/repository.ts";
import { emit } from "./support/row.ts";

/** All modules are of one tier: with three, each node is composed and published thrice. From a controller that starts on a full catalogue to every node's declaration in the broker, in one batch. */
async function measure(nodes: number, reach: boolean): Promise<void> {
  const repository = new BenchRepository();
  const centre = await aCentre();
  const broker = connectBroker({ url: centre.nats.url, name: "bench" });
  await broker.connected();
  repository.commit(catalogueFiles(nodes, scaled(1_000), { rollout: { batches: ["100%"] } }, 2));
  const names = Array.from({ length: nodes }, (_, i) => `n${i}`);
  const fleet = await aFleet({
    url: centre.nats.url,
    nodes: names,
    publicKey: null,
    deaf: true,
    // All are heard before the plan is made: what is measured is not the waiting for hosts.
    heartbeat: Math.max(200, nodes / 2),
  });
  const from = performance.now();
  const controller = centre.start(repository.dir);
  try {
    const stop = askMeanwhile(centre.link, "node", { name: "n1" }, 20);
    let merged = 0;
    const until = performance.now() + 180_000;
    for (;;) {
      if (!merged && centre.log().includes("a merge became a plan")) merged = performance.now() - from;
      const there = await publishedKeys(broker).catch(() => new Set<string>());
      if (there.size >= nodes) break;
      if (performance.now() > until) throw new Error(`${there.size} of ${nodes}\n${centre.log()}`);
      await delay(50);
    }
    const took = performance.now() - from;
    const used = cpuOf(controller.pid!);
    const verbs = await stop();
    const { rss, peak } = memoryOf(controller.pid!);
    emit({
      row: `${nodes} nodes x 50 resources: start of the controller to all published`,
      family: "start to all published",
      size: nodes,
      value: took,
      unit: "ms",
      ...(reach ? { reach: { value: 6_000, of: "value" as const } } : {}),
      note: `${used.toFixed(0)} ms of the controller's CPU; plan after ${merged.toFixed(0)} ms`,
    });
    emit({
      row: `${nodes} nodes: memory of the controller, at most`,
      family: "controller's memory",
      size: nodes,
      value: peak,
      unit: "MiB",
      ...(reach ? { reach: { value: 250, of: "value" as const } } : {}),
      note: `${rss.toFixed(0)} MiB at the end`,
    });
    emit({
      row: `${nodes} nodes: verb p99 meanwhile`,
      family: "verb p99",
      size: nodes,
      value: verbs.p99,
      unit: "ms",
      ...(reach ? { reach: { value: 250, of: "value" as const } } : {}),
      note: `${verbs.calls} calls, median ${verbs.median.toFixed(0)} ms, ${verbs.failed} before it was there`,
    });
  } finally {
    await broker.close();
    await fleet.close();
    await centre.stop();
    repository.remove();
  }
}

await measure(scaled(1_000), false);
await measure(scaled(10_000), true);
