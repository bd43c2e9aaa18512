import { nodeKey, subjects } from "../declaration/names.ts";
import type { Broker } from "../io/nats.ts";
import { serveEndpoints, type VerbHandler, type VerbService } from "../verbs/serve.ts";

/** Answers the verbs of one node: `mesh.node.<node>.<verb>`. */
export function serveNodeVerbs(
  broker: Broker,
  node: string,
  handlers: Readonly<Record<string, VerbHandler>>,
): VerbService {
  const endpoints = Object.keys(handlers).map((verb) => ({
    verb,
    name: verb,
    subject: subjects.nodeVerb(node, verb),
    queue: nodeKey(node),
  }));
  return serveEndpoints(broker, { name: "mesh-host", description: `host of ${node}`, endpoints }, handlers);
}
