import type { Context } from "../context.ts";
import { BrokerUnreachable, connectBroker } from "../io/nats.ts";
import { callNodeVerb, callVerb } from "./call.ts";

/** A way to ask the mesh. Answers are the documents that `--json` prints. */
export interface Link {
  controller<T = unknown>(verb: string, body: object): Promise<T>;
  node<T = unknown>(node: string, verb: string, body: object): Promise<T>;
  close(): Promise<void>;
}

const WITHIN = 5_000;
const SEAT = "mesh-controller";

/** Opens a link to the broker of a context. Throws BrokerUnreachable within five seconds. */
export async function openLink(context: Context): Promise<Link> {
  if (!context.broker) throw new BrokerUnreachable({ address: "(none)", why: "the context names no broker" });
  return linkTo(context.broker, "mesh");
}

/** @param name shown in the broker's list of connections */
export async function linkTo(url: string, name: string): Promise<Link> {
  const broker = connectBroker({ url, name });
  try {
    await broker.connected({ within: WITHIN });
  } catch (error) {
    await broker.close();
    throw error;
  }
  return {
    controller: <T>(verb: string, body: object) =>
      callVerb(broker, SEAT, verb, body, { timeout: WITHIN }) as Promise<T>,
    node: <T>(node: string, verb: string, body: object) =>
      callNodeVerb(broker, node, verb, body, { timeout: WITHIN }) as Promise<T>,
    close: () => broker.close(),
  };
}
