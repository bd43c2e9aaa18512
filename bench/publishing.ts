import { scaled } from "./config.ts";
import { measurePublish } from "./publish.ts";
import { emit } from "./support/row.ts";

const BYTES = 18_000;

for (const nodes of [scaled(1_000), scaled(10_000)]) {
  const { cold, again } = await measurePublish(nodes, BYTES);
  emit({
    row: `sign and publish ${nodes} declarations of ${BYTES / 1_000} kB`,
    family: "sign and publish",
    size: nodes,
    value: cold.cpuMs,
    unit: "ms CPU",
    note: `nats-server ${cold.serverCpuMs.toFixed(0)} ms of CPU, ${cold.ms.toFixed(0)} ms in all; anew ${again.cpuMs.toFixed(0)} ms of CPU`,
  });
}
