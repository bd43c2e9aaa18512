import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { connect, headers, type NatsConnection } from "nats";
import { encodeError } from "../../src/verbs/wire.ts";
import type { TestNats } from "./nats.ts";

export type Verbs = Record<string, (body: never) => unknown>;

/**
 * Answers verbs of the controller and of nodes on a real nats-server with fixed documents, for tests of the command line.
 * Keys are `status`, or `web-1/logs` for a node's. What a verb throws is answered as an error of a micro service.
 */
export async function stubController(
  nats: TestNats,
  verbs: Verbs,
): Promise<{ context: string; close: () => Promise<void> }> {
  const connection: NatsConnection = await connect({
    servers: `127.0.0.1:${nats.port}`,
    user: nats.user,
    pass: nats.pass,
  });
  for (const pattern of ["mesh.seat.mesh-controller.>", "mesh.node.>"]) {
    connection.subscribe(pattern, {
      callback: (_error, message) => {
        const parts = message.subject.split(".");
        const name = parts[1] === "seat" ? parts[3] : `${parts[2]}/${parts[3]}`;
        const verb = verbs[name ?? ""];
        if (!verb) return;
        try {
          message.respond(
            JSON.stringify(verb((message.data.length > 0 ? JSON.parse(message.string()) : {}) as never)),
          );
        } catch (error) {
          const head = headers();
          const { body, message: why } = encodeError(error, (text) => text);
          head.set("Nats-Service-Error", why);
          head.set("Nats-Service-Error-Code", "400");
          message.respond(body, { headers: head });
        }
      },
    });
  }
  await connection.flush();
  const context = join(nats.dir, "context.json");
  writeFileSync(context, JSON.stringify({ broker: nats.url }), { mode: 0o600 });
  return { context, close: () => connection.close() };
}

/** A status as `mesh status --json` prints it, of so many nodes. */
export function statusOf(count: number, change: Record<string, unknown> = {}) {
  const nodes = Array.from({ length: count }, (_, i) => ({
    name: `node-${String(i + 1).padStart(4, "0")}`,
    state: "converged",
    revision: "a".repeat(64),
    commit: "b".repeat(40),
    seenAt: "2026-01-01T00:00:00.000Z",
    handovers: [],
  }));
  return {
    mesh: "mesh",
    frozen: null,
    catalogue: {
      ref: "main",
      commit: "b".repeat(40),
      subject: "A change",
      seenAt: "2026-01-01T00:00:00.000Z",
      deployed: "b".repeat(40),
      problems: [],
    },
    plan: { id: 1, commit: "b".repeat(40), state: "done", tier: null, reason: null },
    controllers: [{ id: "c1", role: "active", since: "2026-01-01T00:00:00.000Z" }],
    nodes,
    totals: { nodes: count, converged: count, applying: 0, failed: 0, offline: 0 },
    ...change,
  };
}
