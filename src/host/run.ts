import { readFileSync } from "node:fs";
import { arch } from "node:os";
import { type Context, findContext, readContext } from "../context.ts";
import { meshError, messageOf } from "../errors.ts";
import { systemClock } from "../io/clock.ts";
import { faultAt } from "../io/faults.ts";
import type { ReportBody } from "../report/send.ts";
import { VERSION } from "../version.ts";
import type { HostEnvironment } from "./config.ts";
import { createHostLog, type HostLog } from "./log.ts";
import { type Machine, openMachine } from "./machine.ts";
import { placeAt } from "./place.ts";
import { createReporting, type Reporting } from "./reporting.ts";
import { writeStatus } from "./status.ts";

export class NodeNameTaken extends meshError(
  "node-name-taken",
  "stalled",
  (f: { dir: string; found: string; node: string }) =>
    `${f.dir} is the state of node ${f.found}, not of ${f.node}; give --node ${f.found}, or another --root`,
) {}

export interface RunOptions {
  node: string;
  root: string;
  context: string | null;
}

/** Ending is bounded: what runs lives on, and what was broken off is found again by the next host. */
const ENDS_WITHIN = 2_000;

/** Runs the host until SIGTERM or SIGINT. Returns the exit code. */
export async function runHost(options: RunOptions, environment: HostEnvironment): Promise<number> {
  const log = createHostLog(environment.log, options.node);
  const ended = new AbortController();
  for (const signal of ["SIGTERM", "SIGINT"] as const) process.once(signal, () => ended.abort());
  process.on("SIGHUP", () => undefined);
  const context = contextOf(options, environment, log);
  const place = placeAt(options.root, true);
  let reporting: Reporting | null = null;
  const fault = faultAt(environment.fault);
  const machine = await openMachine(place, environment, fault, {
    onEvent: (event) => {
      log.info({ resource: event.resource, kind: event.kind }, event.detail);
      reporting?.event(event);
    },
    onAccount: (now) => reporting?.changed(now),
    onError: (error) => log.warn({}, messageOf(error)),
  });
  try {
    checkNode(machine, options.node);
    const pinned = pinKey(machine, context?.publicKey ?? null, log);
    // Until the link is there its reports are kept here, with the events that only they hold.
    const early: ReportBody[] = [];
    let put = (body: ReportBody): void => {
      early.push(body);
    };
    reporting = createReporting({
      node: options.node,
      version: VERSION,
      arch: arch(),
      clock: systemClock,
      account: () => machine.loop.account(),
      limits: () => machine.supervisor.limits(),
      signal: ended.signal,
      put: (body) => {
        fault("report-before-put");
        attempt(log, () => writeStatus(place, body));
        attempt(log, () => put(body));
      },
    });
    const url = brokerOf(environment, context, log);
    const working = machine.loop.run(ended.signal);
    const link = url === null ? null : await linkTo(url, options.node, machine, pinned, reporting, log);
    put = link?.put ?? (() => undefined);
    for (const body of early.splice(0)) put(body);
    // A tool or a stop that takes long is not waited for: the next host goes on with it.
    await Promise.race([working, afterEnd(ended.signal)]);
    if (link) await withinBound(link.close());
    return 0;
  } finally {
    ended.abort();
    await withinBound(machine.close());
  }
}

/** Loaded after the loop has begun: what is declared is kept before anything of the network is there. */
async function linkTo(
  url: string,
  node: string,
  machine: Machine,
  pinned: string | null,
  reporting: Reporting,
  log: HostLog,
) {
  const { openLink } = await import("./link.ts");
  return openLink({ url, node, machine, pinned, reporting, log, clock: systemClock });
}

function attempt(log: HostLog, what: () => void): void {
  try {
    what();
  } catch (error) {
    log.warn({}, messageOf(error));
  }
}

async function afterEnd(signal: AbortSignal): Promise<void> {
  await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
  await systemClock.sleep(ENDS_WITHIN);
}

async function withinBound(promise: Promise<unknown>): Promise<void> {
  const bound = new AbortController();
  await Promise.race([promise, systemClock.sleep(ENDS_WITHIN, bound.signal).catch(() => undefined)]);
  bound.abort();
}

/** A context that cannot be read must not keep a machine from being kept as it was declared last. */
function contextOf(options: RunOptions, environment: HostEnvironment, log: HostLog): Context | null {
  const found = findContext({
    flag: options.context ?? undefined,
    env: environment.context,
    cwd: process.cwd(),
  });
  if (found.file === null) return null;
  try {
    return readContext(found.file);
  } catch (error) {
    log.warn({}, messageOf(error));
    return null;
  }
}

function brokerOf(environment: HostEnvironment, context: Context | null, log: HostLog): string | null {
  if (environment.brokerFile) {
    try {
      return readFileSync(environment.brokerFile, "utf8").trim();
    } catch (error) {
      log.warn({}, `MESH_BROKER_FILE: ${messageOf(error)}`);
    }
  }
  const url = environment.broker ?? context?.broker ?? null;
  if (url === null)
    log.warn(
      {},
      "no broker known (--context, MESH_BROKER): the last declaration is kept, nothing new is received",
    );
  return url;
}

function checkNode({ loaded, place }: Machine, node: string): void {
  const found = loaded.declaration?.body.node;
  if (found !== undefined && found !== node) throw new NodeNameTaken({ dir: place.stateDir, found, node });
}

/** The first key seen is the one that counts from then on. */
function pinKey({ loaded, store, place }: Machine, offered: string | null, log: HostLog): string | null {
  if (loaded.pinned === null) {
    if (offered === null) {
      log.warn({}, "no public key known: signatures are not looked at");
      return null;
    }
    store.pin(offered);
    return offered;
  }
  if (offered !== null && offered !== loaded.pinned)
    log.warn(
      {},
      `the context's public key is not the one pinned in ${place.stateDir}/pinned.json; only declarations signed with the pinned one are taken. If the key was changed on purpose, remove that file`,
    );
  return loaded.pinned;
}
