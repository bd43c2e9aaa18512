import { objectStore } from "../declaration/objects.ts";
import { receiveDeclarations } from "../declaration/receive.ts";
import type { Declaration } from "../declaration/schema.ts";
import { messageOf } from "../errors.ts";
import type { Clock } from "../io/clock.ts";
import { connectBroker } from "../io/nats.ts";
import { type ReportBody, reportSender } from "../report/send.ts";
import type { HostLog } from "./log.ts";
import type { Machine } from "./machine.ts";
import type { Reporting } from "./reporting.ts";
import { serveNodeVerbs } from "./verb-service.ts";
import { nodeVerbs } from "./verbs.ts";

export interface LinkParts {
  url: string;
  node: string;
  machine: Machine;
  /** The key declarations must be signed with; null: signatures are not looked at. */
  pinned: string | null;
  reporting: Reporting;
  log: HostLog;
  clock: Clock;
}

export interface Link {
  put(body: ReportBody): void;
  close(): Promise<void>;
}

const BEAT_BEFORE_DECLARED = 30_000;

/** Everything between this host and the broker: it waits for it for ever, and nothing of the machine waits for it. */
export function openLink(parts: LinkParts): Link {
  const { url, node, machine, log, reporting } = parts;
  const { loop, loaded, assembly, place } = machine;
  const ended = new AbortController();
  const broker = connectBroker({ url, name: `mesh-host ${node}`, signal: ended.signal, log });
  const trouble = (error: unknown) => log.warn({}, messageOf(error));
  const sender = reportSender(broker, { node, dir: `${place.stateDir}/reports`, onTrouble: trouble });
  assembly.objects.from(objectStore(broker));
  const receiver = receiveDeclarations(broker, node, {
    pinnedKey: parts.pinned,
    accepted: loaded.declaration && {
      sequence: loaded.declaration.sequence,
      revision: loaded.declaration.revision,
    },
    onDeclaration: (declaration) => {
      loop.submit(declaration);
      void assembly.objects.hold(objectsOf(declaration)).catch(trouble);
    },
    onRefused: (reason) => loop.refused(messageOf(reason)),
    onError: trouble,
  });
  const beat = () => {
    const declared = loop.declared();
    sender.heartbeat({ sequence: declared?.sequence ?? 0, revision: declared?.revision ?? null });
  };
  broker.onConnect(() => {
    beat();
    reporting.full();
  });
  void beatFor(parts, ended.signal, beat);
  const verbs = serveNodeVerbs(broker, node, nodeVerbs(node, loop, machine.supervisor));
  return {
    put: (body) => void sender.put(body),
    async close() {
      ended.abort();
      await Promise.allSettled([verbs.stop(), receiver.stop(), sender.close()]);
      await broker.close();
    },
  };
}

async function beatFor({ clock, machine }: LinkParts, signal: AbortSignal, beat: () => void): Promise<void> {
  while (!signal.aborted) {
    const every = machine.loop.declared()?.body.host.heartbeat ?? BEAT_BEFORE_DECLARED;
    await clock.sleep(every, signal).catch(() => undefined);
    if (!signal.aborted) beat();
  }
}

/** The sha256 of every body that is not in the declaration itself. */
function objectsOf({ body }: Declaration): string[] {
  return body.resources.flatMap((resource) =>
    resource.type === "file" && "object" in resource.body ? [resource.body.object] : [],
  );
}
