import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { type Receiver, receiveDeclarations } from "../../src/declaration/receive.ts";
import type { Declaration } from "../../src/declaration/schema.ts";
import { type Broker, connectBroker } from "../../src/io/nats.ts";
import type { ResourceReport } from "../../src/report/schema.ts";
import { type ReportBody, type ReportSender, reportSender } from "../../src/report/send.ts";
import { VERSION } from "../../src/version.ts";

/** What a simulated host does with a declaration. Nothing: applied at once. */
export interface Behaviour {
  /** Until it reports, ms. */
  delay?: number;
  /** Applying fails with this. */
  fails?: string;
  /** From here on it says nothing: no report, no heartbeat. */
  silent?: boolean;
}

export interface FleetOptions {
  url: string;
  nodes: readonly string[];
  /** The controller's; null: signatures are not looked at. */
  publicKey: string | null;
  /** NATS connections that the hosts share (4). */
  connections?: number;
  /** Between two heartbeats of one host, ms (10,000). */
  heartbeat?: number;
  /** Only heartbeats: declarations are neither received nor reported. */
  deaf?: boolean;
  behaviour?(node: string, declaration: Declaration): Behaviour;
}

export interface FleetHost {
  node: string;
  /** What it holds now. */
  declaration: Declaration | null;
  silent: boolean;
  refused: string[];
}

/** Hosts that speak the real protocol and apply in memory, all in this process. */
export interface Fleet {
  readonly hosts: ReadonlyMap<string, FleetHost>;
  /** Declarations taken so far, over all hosts. */
  readonly received: number;
  /** Silences hosts, or lets them speak again: they beat and report at once. */
  silence(nodes: Iterable<string>, silent: boolean): void;
  /** Behaves so from now on. */
  behave(behaviour: NonNullable<FleetOptions["behaviour"]>): void;
  close(): Promise<void>;
}

interface Simulated extends FleetHost {
  sender: ReportSender;
  receiver: Receiver | null;
  failure: string | null;
}

/**
 * Starts `nodes.length` hosts over a few connections: each reads its own key, verifies what stands there, reports over
 * JetStream from a queue on disk and beats, with the code of `mesh-host`; only the machine below it is simulated.
 */
export async function aFleet(options: FleetOptions): Promise<Fleet> {
  const dir = mkdtempSync(join(tmpdir(), "mesh-fleet-"));
  const ended = new AbortController();
  const { signal } = ended;
  const brokers = await openBrokers(options);
  const hosts = new Map<string, Simulated>();
  let behaviour: NonNullable<FleetOptions["behaviour"]> = options.behaviour ?? (() => ({}));
  let received = 0;

  // One listener for all hosts' waits.
  const over = new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve()));
  const pause = (ms: number) => Promise.race([delay(ms, undefined, { ref: false }), over]);

  const beat = (host: Simulated) => {
    const { declaration, sender } = host;
    if (!host.silent)
      sender.heartbeat({
        sequence: declaration?.sequence ?? 0,
        revision: declaration?.revision ?? null,
      });
  };
  const say = (host: Simulated) => {
    if (!host.silent) host.sender.put(reportOf(host));
  };
  const take = async (host: Simulated, declaration: Declaration) => {
    received += 1;
    const does = behaviour(host.node, declaration);
    if (does.silent) host.silent = true;
    if (does.delay) await pause(does.delay);
    if (signal.aborted) return;
    host.declaration = declaration;
    host.failure = does.fails ?? null;
    say(host);
  };

  options.nodes.forEach((node, i) => {
    const broker = brokers[i % brokers.length] as Broker;
    const sender = reportSender(broker, { node, dir: join(dir, node) });
    const host: Simulated = {
      node,
      declaration: null,
      silent: false,
      refused: [],
      failure: null,
      sender,
      receiver: null,
    };
    hosts.set(node, host);
    beat(host);
    if (options.deaf) return;
    say(host);
    host.receiver = receiveDeclarations(broker, node, {
      pinnedKey: options.publicKey,
      accepted: null,
      onDeclaration: (declaration) => take(host, declaration),
      onRefused: (reason) => void host.refused.push(reason.message),
    });
  });
  const beating = beatInTurn([...hosts.values()], options.heartbeat ?? 10_000, beat);

  return {
    hosts,
    get received() {
      return received;
    },
    silence(nodes, silent) {
      for (const node of nodes) {
        const host = hosts.get(node);
        if (!host) continue;
        host.silent = silent;
        beat(host);
        say(host);
      }
    },
    behave(next) {
      behaviour = next;
    },
    async close() {
      clearInterval(beating);
      ended.abort();
      await Promise.all(
        [...hosts.values()].flatMap(({ sender, receiver }) => [sender.close(), receiver?.stop()]),
      );
      await Promise.all(brokers.map((broker) => broker.close()));
      rmSync(dir, { recursive: true, force: true });
    },
  };
}

async function openBrokers({ url, connections = 4 }: FleetOptions): Promise<Broker[]> {
  const brokers = Array.from({ length: connections }, (_, i) =>
    connectBroker({ url, name: `fleet ${i}`, spread: 100 }),
  );
  await Promise.all(brokers.map((broker) => broker.connected({ within: 30_000 })));
  return brokers;
}

/** A few hosts each tick, so that all beat once in `every`. */
function beatInTurn(
  hosts: readonly Simulated[],
  every: number,
  beat: (host: Simulated) => void,
): NodeJS.Timeout {
  const TICK = 100;
  let next = 0;
  let due = 0;
  return setInterval(() => {
    due += (hosts.length * TICK) / every;
    for (; due >= 1; due -= 1) beat(hosts[next++ % hosts.length] as Simulated);
  }, TICK);
}

function reportOf({ node, declaration, failure }: Simulated): ReportBody {
  const at = new Date().toISOString();
  const outcome = declaration === null ? "none" : failure === null ? "applied" : "failed";
  const resources = (declaration?.body.resources ?? []).map(
    ({ id, type }): ResourceReport => ({
      id,
      type,
      state: failure === null ? "ok" : "failed",
      error: failure,
      note: null,
      process:
        type === "process" ? { state: "running", pid: 1_000, restarts: 0, since: at, exit: null } : null,
    }),
  );
  return {
    format: 1,
    node,
    at,
    version: VERSION,
    arch: "x64",
    outcome,
    error: failure,
    revision: declaration?.revision ?? null,
    sequence: declaration?.sequence ?? 0,
    commit: declaration?.commit ?? null,
    resources,
    differences: [],
    handovers: [],
    events:
      outcome === "none"
        ? []
        : [{ at, kind: failure === null ? "applied" : "failed", resource: null, detail: failure ?? "" }],
    limits: [],
  };
}
