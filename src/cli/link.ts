import { existsSync } from "node:fs";
import { join } from "node:path";
import type { Context } from "../context.ts";
import { MeshError } from "../errors.ts";
import { lockHolder } from "../io/durable.ts";
import { type Broker, BrokerUnreachable, connectBroker } from "../io/nats.ts";
import { callNodeVerb, callVerb } from "./call.ts";
import { HostUnreachable, MeshDown } from "./errors.ts";

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
  try {
    return await linkTo(context.broker, "mesh");
  } catch (error) {
    if (!(error instanceof BrokerUnreachable) || !isDown(context.dir)) throw error;
    throw new MeshDown({ dir: context.dir as string, broker: error.facts.address }, { cause: error });
  }
}

/** `mesh up` made this mesh here, and nobody runs it now. */
function isDown(dir: string | null): boolean {
  return dir !== null && existsSync(join(dir, "up.json")) && lockHolder(join(dir, "run")) === null;
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
    node: async <T>(node: string, verb: string, body: object) => {
      try {
        return (await callNodeVerb(broker, node, verb, body, { timeout: WITHIN })) as T;
      } catch (error) {
        if (error instanceof HostUnreachable) await known(broker, node);
        throw error;
      }
    },
    close: () => broker.close(),
  };
}

/** A node that nobody declares has no host to wait for: the controller says so, where it answers. */
async function known(broker: Broker, name: string): Promise<void> {
  const asked = callVerb(broker, SEAT, "node", { name }, { timeout: 1_000 });
  await asked.catch((error) => {
    if (error instanceof MeshError && error.code === "node-unknown") throw error;
  });
}
