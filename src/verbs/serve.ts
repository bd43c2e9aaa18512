import { randomUUID } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { headers, type Service, type ServiceMsg } from "nats";
import { type ObjectStore, objectStore } from "../declaration/objects.ts";
import { meshError } from "../errors.ts";
import { type Broker, withoutCredentials } from "../io/nats.ts";
import { VERSION } from "../version.ts";
import { CALL_HEADER, ERROR_CODE_HEADER, ERROR_HEADER, encodeError, OBJECT_HEADER } from "./wire.ts";

export class CallUnreadable extends meshError(
  "call-unreadable",
  "stalled",
  (f: { verb: string }) => `verb ${f.verb}: the body is no JSON; a JSON document is allowed`,
) {}

/** Takes a call's body, returns the document that answers it. `call.id` is the same in a retry. Throws a MeshError to refuse. */
export type VerbHandler = (body: unknown, call: { id: string }) => Promise<unknown>;

export interface Endpoint {
  verb: string;
  /** Shown by `nats micro info`; the verb itself, or `<verb>-all`. */
  name: string;
  subject: string;
  /** Members of one queue share the calls; null: this instance hears every one. */
  queue: string | null;
}

export interface VerbService {
  /** Takes no further call, answers those in hand, then resolves. */
  stop(): Promise<void>;
}

const AGAIN_AFTER = 1_000;

/**
 * Answers verbs as one NATS micro service: from the first connect on, for ever. While a call is being worked its retries
 * wait for the same answer, so that a handler runs once for an id in this process.
 */
export function serveEndpoints(
  broker: Broker,
  service: { name: string; description: string; endpoints: readonly Endpoint[] },
  handlers: Readonly<Record<string, VerbHandler>>,
): VerbService {
  const ended = new AbortController();
  const objects = objectStore(broker);
  const underWay = new Map<string, Promise<Answer>>();
  let serving: Service | null = null;
  let begun = false;

  async function keep(): Promise<void> {
    while (!ended.signal.aborted) {
      try {
        serving = await broker.connection.services.add({
          name: service.name,
          version: VERSION,
          description: service.description,
        });
        for (const { verb, name, subject, queue } of service.endpoints) {
          serving.addEndpoint(name, {
            subject,
            queue: queue ?? `every-${serving.info().id}`,
            handler: (error, message) => {
              if (!error) void respond(verb, message);
            },
          });
        }
        // It closes itself when the server takes a subscription away.
        await serving.stopped;
      } catch {}
      await delay(AGAIN_AFTER, undefined, { signal: ended.signal }).catch(() => {});
    }
  }

  async function respond(verb: string, message: ServiceMsg): Promise<void> {
    const id = message.headers?.get(CALL_HEADER) || randomUUID();
    const key = `${verb} ${id}`;
    let answer = underWay.get(key);
    if (!answer) {
      answer = answerTo(verb, id, message.data).finally(() => underWay.delete(key));
      underWay.set(key, answer);
    }
    const { body, header } = await answer;
    const told = headers();
    for (const [name, value] of Object.entries(header)) told.set(name, value);
    try {
      message.respond(body, { headers: told });
    } catch {
      // The connection is closed: the caller asks another.
    }
  }

  async function answerTo(verb: string, id: string, data: Uint8Array): Promise<Answer> {
    try {
      const result = await handlers[verb]!(bodyOf(verb, data), { id });
      return await fitting(broker, objects, Buffer.from(JSON.stringify(result ?? null)));
    } catch (error) {
      const { number, message, body } = encodeError(error, withoutCredentials);
      return {
        body,
        header: { [ERROR_CODE_HEADER]: String(number), [ERROR_HEADER]: message },
      };
    }
  }

  const off = broker.onConnect(() => {
    if (begun) return;
    begun = true;
    void keep();
  });
  return {
    async stop() {
      ended.abort();
      off();
      await serving?.stop();
      while (underWay.size > 0) await Promise.allSettled(underWay.values());
      if (broker.status.connected)
        await Promise.race([broker.connection.flush(), delay(1_000)]).catch(() => {});
    },
  };
}

interface Answer {
  body: Uint8Array;
  header: Record<string, string>;
}

/** The answer itself, or where it is when it is too large for a message. */
async function fitting(broker: Broker, objects: ObjectStore, body: Buffer): Promise<Answer> {
  if (body.length <= (broker.maxPayload * 3) / 4) return { body, header: {} };
  const { sha256 } = await objects.put(body);
  return { body: new Uint8Array(), header: { [OBJECT_HEADER]: sha256 } };
}

function bodyOf(verb: string, data: Uint8Array): unknown {
  if (data.length === 0) return {};
  try {
    return JSON.parse(Buffer.from(data).toString("utf8"));
  } catch (cause) {
    throw new CallUnreadable({ verb }, { cause });
  }
}
