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
  const beat = () => {
    const declared = loop.declared();
    sender.heartbeat({ sequence: declared?.sequence ?? 0, revision: declared?.revision ?? null });
  };
  const beating = beatFor(parts, ended.signal, beat);
  const receiver = receiveDeclarations(broker, node, {
    pinnedKey: parts.pinned,
    accepted: loaded.declaration && {
      sequence: loaded.declaration.sequence,
      revision: loaded.declaration.revision,
    },
    onDeclaration: (declaration) => {
      loop.submit(declaration);
      beating.every(declaration.body.host.heartbeat);
      void assembly.objects.hold(objectsOf(declaration)).catch(trouble);
    },
    onRefused: (reason) => loop.refused(messageOf(reason)),
    onError: trouble,
  });
  broker.onConnect(() => {
    beat();
    reporting.full();
  });
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

/** Beats until `signal` aborts; another interval counts at once, and not only after the one before it has passed. */
function beatFor({ clock, machine }: LinkParts, signal: AbortSignal, beat: () => void) {
  let interval = machine.loop.declared()?.body.host.heartbeat ?? BEAT_BEFORE_DECLARED;
  let changed = new AbortController();
  void (async () => {
    while (!signal.aborted) {
      changed = new AbortController();
      await clock.sleep(interval, AbortSignal.any([signal, changed.signal])).catch(() => undefined);
      if (!signal.aborted) beat();
    }
  })();
  return {
    every(ms: number): void {
      if (ms === interval) return;
      interval = ms;
      changed.abort();
    },
  };
}

/** The sha256 of every body that is not in the declaration itself. */
function objectsOf({ body }: Declaration): string[] {
  return body.resources.flatMap((resource) =>
    resource.type === "file" && "object" in resource.body ? [resource.body.object] : [],
  );
}
