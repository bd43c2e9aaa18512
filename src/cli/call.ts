import { randomUUID } from "node:crypto";
import { createInbox, headers, type Msg } from "nats";
import { subjects } from "../declaration/names.ts";
import { objectStore } from "../declaration/objects.ts";
import type { MeshError } from "../errors.ts";
import type { Broker } from "../io/nats.ts";
import { CALL_HEADER, decodeError, ERROR_CODE_HEADER, ERROR_HEADER, OBJECT_HEADER } from "../verbs/wire.ts";
import { ControllerUnreachable, HostUnreachable } from "./errors.ts";

export interface CallOptions {
  /** For the whole call, in ms (5,000). */
  timeout?: number;
  /** The call's id, the same in each of its retries; made here when it is not given. */
  id?: string;
}

const WITHIN = 5_000;
const RETRY_AFTER = 1_000;
/** Nobody listens at this moment: one may come back sooner than a silent one answers. */
const NOBODY_AFTER = 250;

/**
 * Asks a seat. The first call goes to one member; retries go to all, with the same id, and the first answer wins.
 * Throws BrokerUnreachable, ControllerUnreachable, or the RemoteError that the other side answered.
 */
export function callVerb(
  broker: Broker,
  seat: string,
  verb: string,
  body: unknown,
  options: CallOptions = {},
): Promise<unknown> {
  const ms = options.timeout ?? WITHIN;
  return call(broker, body, {
    ...options,
    first: subjects.seatVerb(seat, verb),
    retry: subjects.seatVerbAll(seat, verb),
    nobody: () => new ControllerUnreachable({ broker: broker.address, ms }),
  });
}

/** Asks the host of a node. Throws BrokerUnreachable, HostUnreachable, or the RemoteError that the host answered. */
export function callNodeVerb(
  broker: Broker,
  node: string,
  verb: string,
  body: unknown,
  options: CallOptions = {},
): Promise<unknown> {
  const subject = subjects.nodeVerb(node, verb);
  const nobody = () => new HostUnreachable({ node, ms: options.timeout ?? WITHIN });
  return call(broker, body, { ...options, first: subject, retry: subject, nobody });
}

async function call(
  broker: Broker,
  body: unknown,
  to: CallOptions & { first: string; retry: string; nobody: () => MeshError },
): Promise<unknown> {
  const until = performance.now() + (to.timeout ?? WITHIN);
  await broker.connected({ within: to.timeout ?? WITHIN });
  const answer = await firstAnswer(broker, Buffer.from(JSON.stringify(body ?? {})), { ...to, until });
  const code = answer.headers?.get(ERROR_CODE_HEADER);
  if (code) throw decodeError(answer.data, { code, message: answer.headers?.get(ERROR_HEADER) ?? "" });
  const object = answer.headers?.get(OBJECT_HEADER);
  const bytes = object ? await objectStore(broker).get(object) : Buffer.from(answer.data);
  return JSON.parse(bytes.toString("utf8"));
}

function firstAnswer(
  broker: Broker,
  payload: Uint8Array,
  to: { first: string; retry: string; until: number; id?: string; nobody: () => MeshError },
): Promise<Msg> {
  const inbox = createInbox();
  const header = headers();
  header.set(CALL_HEADER, to.id ?? randomUUID());
  return new Promise((resolve, reject) => {
    let timer: NodeJS.Timeout | undefined;
    const again = (after: number) => {
      clearTimeout(timer);
      const left = to.until - performance.now();
      timer = left > after ? setTimeout(() => send(to.retry), after) : setTimeout(giveUp, Math.max(0, left));
    };
    const send = (subject: string) => {
      // Away for a moment: what would be sent now is lost.
      if (broker.status.connected)
        broker.connection.publish(subject, payload, { reply: inbox, headers: header });
      again(broker.status.connected ? RETRY_AFTER : NOBODY_AFTER);
    };
    const end = () => {
      clearTimeout(timer);
      subscription.unsubscribe();
    };
    const giveUp = () => {
      end();
      reject(to.nobody());
    };
    const subscription = broker.connection.subscribe(inbox, {
      callback: (error, message) => {
        if (error) return void again(NOBODY_AFTER);
        if (message.headers?.code === 503) return void again(NOBODY_AFTER);
        end();
        resolve(message);
      },
    });
    send(to.first);
  });
}
