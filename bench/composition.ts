import { createHash } from "node:crypto";
import { measureCompose } from "./compose.ts";
import { scaled } from "./config.ts";
import { cpu, emit } from "./support/row.ts";

/** Of so many declarations of 50 resources (about 18 KiB each), only the digest: nothing composes in less. */
async function digests(nodes: number): Promise<number> {
  const text = "x".repeat(18_000);
  return cpu(() => {
    for (let i = 0; i < nodes; i++) createHash("sha256").update(text).update(String(i)).digest("hex");
  });
}

for (const [nodes, reach] of [
  [scaled(1_000), 800],
  [scaled(10_000), 6_000],
] as const) {
  const measured = measureCompose(nodes, scaled(1_000));
  const limit = { what: "sha256 of as many declarations", value: await digests(nodes) };
  emit({
    row: `cold compose of ${nodes} nodes x ${measured.resourcesPerNode} resources`,
    family: "cold compose",
    size: nodes,
    value: measured.coldMs,
    unit: "ms CPU",
    limit,
    reach: { value: reach, of: "value" },
    note: `heap ${measured.heapMiB} MiB`,
  });
  emit({
    row: `compose after one module of ${measured.modules} changed, ${nodes} nodes`,
    family: "compose one change",
    size: nodes,
    value: measured.incrementalMs,
    unit: "ms CPU",
  });
}
