import { subjects } from "../declaration/names.ts";
import type { Broker } from "../io/nats.ts";
import { serveEndpoints, type VerbHandler, type VerbService } from "../verbs/serve.ts";

/**
 * Answers the verbs of a seat. First calls come through the seat's queue group, to one member; retries come on `.all`,
 * to every member: one that is paused stays in the group and gets calls that nobody answers.
 */
export function serveVerbs(
  broker: Broker,
  seat: string,
  handlers: Readonly<Record<string, VerbHandler>>,
): VerbService {
  const endpoints = Object.keys(handlers).flatMap((verb) => [
    { verb, name: verb, subject: subjects.seatVerb(seat, verb), queue: seat },
    { verb, name: `${verb}-all`, subject: subjects.seatVerbAll(seat, verb), queue: null },
  ]);
  return serveEndpoints(broker, { name: seat, description: `seat ${seat}`, endpoints }, handlers);
}
