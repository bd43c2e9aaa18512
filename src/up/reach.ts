import { connect } from "node:net";
import { BrokerUnreachable, parseBrokerUrl } from "../io/nats.ts";
import { StoreUnreachable } from "../io/postgres.ts";

const WITHIN = 5_000;
const POSTGRES_PORT = 5432;

/** Whether existing parts answer at all, before anything of our own is started. Throws StoreUnreachable, BrokerUnreachable. */
export async function reachExisting(parts: { store: string | null; broker: string | null }): Promise<void> {
  if (parts.store) {
    const { hostname, port } = new URL(parts.store);
    const why = hostname ? await failure(hostname, Number(port) || POSTGRES_PORT) : null;
    if (why) throw new StoreUnreachable({ store: `${hostname}:${port || POSTGRES_PORT}`, why });
  }
  if (parts.broker) {
    const { servers } = parseBrokerUrl(parts.broker);
    const reasons = await Promise.all(
      servers.map((server) =>
        failure(server.slice(0, server.lastIndexOf(":")), Number(server.split(":").at(-1))),
      ),
    );
    if (!reasons.includes(null))
      throw new BrokerUnreachable({ address: servers.join(","), why: reasons[0] ?? "" });
  }
}

/** Why nothing listens there, null when something does. */
function failure(host: string, port: number): Promise<string | null> {
  return new Promise((resolve) => {
    const socket = connect({ host: host.replace(/^\[|\]$/g, ""), port });
    const end = (why: string | null) => {
      socket.destroy();
      resolve(why);
    };
    socket.setTimeout(WITHIN, () => end("no answer within 5 s"));
    socket.once("connect", () => end(null));
    socket.once("error", (error: NodeJS.ErrnoException) => end(error.code ?? error.message));
  });
}
