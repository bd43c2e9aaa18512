import { readFileSync } from "node:fs";
import { objectStore } from "../src/declaration/objects.ts";
import { createPublisher, type Outgoing } from "../src/declaration/publish.ts";
import { ensureStreams } from "../src/declaration/streams.ts";
import { connectBroker } from "../src/io/nats.ts";
import { aSigner } from "../test/support/declarations.ts";
import { startTestNats } from "../test/support/nats.ts";

export interface PublishMeasure {
  /** From the first to the last, milliseconds. */
  ms: number;
  /** Milliseconds of CPU of this process, signing included, and of nats-server (the machine may be busy). */
  cpuMs: number;
  serverCpuMs: number;
}

/** Publishes `nodes` declarations of `bytes` each to an empty store, in batches of 500, and then all of them anew. */
export async function measurePublish(
  nodes: number,
  bytes: number,
): Promise<Record<"cold" | "again", PublishMeasure>> {
  const nats = await startTestNats();
  const broker = connectBroker({ url: nats.url, name: "bench" });
  try {
    await broker.connected();
    await ensureStreams(broker);
    const publisher = createPublisher(broker, { signer: aSigner(), objects: objectStore(broker) });
    const body = JSON.stringify({ text: "x".repeat(bytes) });
    const run = async (sequence: number): Promise<PublishMeasure> => {
      const [began, cpu, server] = [performance.now(), process.cpuUsage(), cpuOf(nats.pid!)];
      for (let first = 0; first < nodes; first += 500) {
        const batch = Array.from({ length: Math.min(500, nodes - first) }, (_, at) => ({
          node: `n${first + at}`,
          ...({ sequence, revision: "0".repeat(64), commit: "0".repeat(40), tier: 2, body } as const),
        })) satisfies Outgoing[];
        const failed = (await publisher.publish(batch)).find((one) => one.result !== "published");
        if (failed) throw new Error(JSON.stringify(failed));
      }
      const used = process.cpuUsage(cpu);
      return {
        ms: performance.now() - began,
        cpuMs: (used.user + used.system) / 1_000,
        serverCpuMs: cpuOf(nats.pid!) - server,
      };
    };
    return { cold: await run(1), again: await run(2) };
  } finally {
    await broker.close();
    await nats.stop();
  }
}

/** Of a process, from its start, in milliseconds (a clock tick is 10). */
function cpuOf(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]!.split(" ");
  return (Number(fields[11]) + Number(fields[12])) * 10;
}
