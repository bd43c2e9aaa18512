import type { Catalogue } from "../src/catalogue/catalogue.ts";
import { createComposer, OFFLINE_FACTS } from "../src/composition/compose.ts";
import { aCatalogue, aModule } from "../test/support/catalogue.ts";

/** Modules of five resources, one in three with the node's own values; each node has ten of them: 50 resources a node. */
export function benchCatalogue(nodes: number, modules: number): Catalogue {
  const names = Array.from({ length: modules }, (_, i) => `m${i}`);
  return aCatalogue({
    modules: Object.fromEntries(names.map((name, i) => [name, benchModule(name, i)])),
    nodes: Object.fromEntries(
      Array.from({ length: nodes }, (_, n) => [
        `n${n}`,
        { modules: Array.from({ length: 10 }, (_, k) => `m${(n * 7 + k * 101) % modules}`) },
      ]),
    ),
  });
}

export function benchModule(name: string, i: number, greeting = "hello"): Record<string, unknown> {
  const own = i % 3 === 0 ? "${node:name} ${node:address}" : "all";
  return {
    tier: i % 3,
    settings: { greeting, workers: { type: "int", default: 4 } },
    ports: { http: "auto" },
    state: {},
    resources: [
      { type: "user", name },
      {
        id: "config",
        type: "file",
        path: `/etc/${name}/main.conf`,
        content: `g = \${setting:greeting}\nport = \${port:http}\nown = ${own}\n`,
      },
      {
        id: "extra",
        type: "file",
        path: `/etc/${name}/extra.conf`,
        content: "workers = ${setting:workers}\n".repeat(8),
      },
      {
        type: "process",
        name,
        id: "server",
        command: ["./server", "--listen", "${node:address}:${port:http}"],
        user: name,
        restartOn: ["config"],
        env: { STORE: "${seat:mesh-store}", STATE: "${state}" },
      },
    ],
  };
}

/** Milliseconds of CPU (the machine may be busy): a cold compose, and one after a single module changed, with the median of 20 such changes. */
export function measureCompose(nodes: number, modules: number) {
  let catalogue = benchCatalogue(nodes, modules);
  const before = process.memoryUsage();
  const composer = createComposer();
  const run = () => {
    const start = process.cpuUsage();
    const { view, problems } = composer.resolve(catalogue);
    const composition = composer.compose(view, OFFLINE_FACTS);
    const used = process.cpuUsage(start);
    const ms = (used.user + used.system) / 1000;
    const all = [...problems, ...composition.problems];
    if (all.length > 0) throw new Error(all[0]?.message);
    return { ms, composition };
  };
  const cold = run();
  const times: number[] = [];
  for (let i = 0; i < 20; i++) {
    const name = `m${i}`;
    const changed = new Map(catalogue.modules);
    changed.set(name, aModule(name, benchModule(name, i, `change ${i}`)));
    catalogue = { ...catalogue, modules: changed };
    times.push(run().ms);
  }
  times.sort((a, b) => a - b);
  const resources = [...cold.composition.nodes.values()].slice(0, 20).map((n) => n.body.resources.length);
  globalThis.gc?.();
  const after = process.memoryUsage();
  return {
    nodes,
    modules,
    resourcesPerNode: Math.round(resources.reduce((a, b) => a + b, 0) / resources.length),
    coldMs: Math.round(cold.ms),
    incrementalMs: Math.round((times[10] as number) * 100) / 100,
    heapMiB: Math.round((after.heapUsed - before.heapUsed) / 1024 ** 2),
    rssMiB: Math.round(after.rss / 1024 ** 2),
  };
}

if (process.argv[1]?.includes("compose")) {
  for (const [nodes, modules] of [
    [100, 1000],
    [1000, 1000],
    [10000, 1000],
  ] as const) {
    console.log(JSON.stringify(measureCompose(nodes, modules)));
  }
}
