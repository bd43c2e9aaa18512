import type { CatalogueReader } from "../catalogue/open.ts";
import { openCatalogue, sourceOf } from "../catalogue/open.ts";
import { createComposer } from "../composition/compose.ts";
import { subjects } from "../declaration/names.ts";
import { createSigner } from "../declaration/sign.ts";
import { MeshError } from "../errors.ts";
import { type Inventory, openInventory } from "../inventory/index.ts";
import { type Clock, systemClock } from "../io/clock.ts";
import { faultAt } from "../io/faults.ts";
import { type Broker, connectBroker } from "../io/nats.ts";
import { controllerId, createActive } from "./active.ts";
import { createAnswers } from "./answers.ts";
import type { ControllerConfig } from "./config.ts";
import { type Duty, takeDuty } from "./duty.ts";
import { serveHttp } from "./http.ts";
import type { Log } from "./log.ts";
import { backoff } from "./runner.ts";
import { awaitTip } from "./tip.ts";
import { serveVerbs } from "./verb-service.ts";
import { controllerVerbs } from "./verbs.ts";

const SEAT = "mesh-controller";
/** How long `plan latest` waits for the tip's plan, ms. */
const LOOK_WITHIN = 4_000;
const DUTY_STOP = 5_000;
/** Reconnects within this, ms: well before the consumers are given up as silent. */
const RECONNECT_SPREAD = 300;

/**
 * Runs a controller until the signal aborts: opens the store and the broker (waiting for them, and saying so), answers
 * verbs at once, and takes the duty whenever it is the active one.
 */
export async function serve(config: ControllerConfig, log: Log, signal: AbortSignal): Promise<void> {
  const clock = systemClock;
  const id = controllerId();
  const signer = createSigner(config.keyFile);
  const health = { ok: false, text: "starting" };
  const http = await serveHttp(config.http, { ready: () => ready() });
  let ready = (): { ok: boolean; text: string } => health;
  log.info({ id, http: http.url }, "controller started");

  const broker = connectBroker({
    url: config.broker,
    name: `mesh-controller ${id}`,
    log,
    spread: RECONNECT_SPREAD,
  });
  const inventory = await insist("the store", () => openInventory(config.store, { name: id }), {
    clock,
    log,
    signal,
  });
  if (!inventory) return end(http, broker, null, null);
  const reader = await insist("the catalogue", () => openReader(config), { clock, log, signal });
  if (!reader) return end(http, broker, inventory, null);

  const composer = createComposer();
  const answers = createAnswers({
    inventory,
    reader,
    broker,
    signer,
    clock,
    mesh: config.mesh,
    ref: config.ref,
  });
  let duty: Duty | null = null;
  let stopping: Promise<void> = Promise.resolve();
  const fault = faultAt(config.fault);

  const active = createActive({
    inventory,
    id,
    clock,
    able: () => broker.status.connected,
    onGain(epoch) {
      log.info({ epoch }, "active");
      void stopping.then(() => {
        if (active.epoch !== epoch) return;
        duty = takeDuty(
          {
            inventory,
            broker,
            reader,
            composer,
            signer,
            clock,
            log,
            ref: config.ref,
            poll: reader.source.kind === "remote" ? config.poll : undefined,
            seats: contextSeats(config, http.url),
            replicas: config.replicas,
            fault,
            onLost: (why) => active.lose(why),
          },
          epoch,
        );
      });
    },
    onLose(why) {
      log.warn({ why }, "standby");
      stopping = within(duty?.stop() ?? Promise.resolve(), DUTY_STOP);
      duty = null;
    },
    onTrouble: (error) => log.warn({ err: error }, "the store did not answer"),
  });

  ready = () => {
    if (!broker.status.connected)
      return { ok: false, text: `broker: link down since ${broker.status.since}` };
    if (!active.reachable) return { ok: false, text: "store: cannot be reached" };
    return { ok: true, text: active.role };
  };
  const verbs = controllerVerbs({
    inventory,
    answers,
    clock,
    lookAtRef: () => awaitTip({ inventory, reader, clock, broker }, duty?.look ?? null, LOOK_WITHIN),
    notice: (kind) => notice(broker, log, kind),
  });
  const service = await serveVerbs(broker, SEAT, verbs);
  active.start();
  await new Promise<void>((done) => signal.addEventListener("abort", () => done(), { once: true }));

  log.info({}, "stopping");
  const last = duty as Duty | null;
  duty = null;
  await within(last?.stop() ?? Promise.resolve(), DUTY_STOP);
  await active.stop();
  await service.stop();
  await end(http, broker, inventory, reader);
}

async function openReader(config: ControllerConfig): Promise<CatalogueReader> {
  const token = config.token;
  const source = sourceOf(config.catalogue, {
    ref: config.ref,
    clone: config.cloneDir,
    ...(token === null ? {} : { token: async () => token }),
  });
  return openCatalogue(source);
}

/** Tries for ever with growing waits, unless waiting cannot help (`stalled`). Null: ended by the signal. */
async function insist<T>(
  what: string,
  open: () => Promise<T>,
  by: { clock: Clock; log: Log; signal: AbortSignal },
): Promise<T | null> {
  const tries = backoff(by.clock, 200, 5_000);
  while (!by.signal.aborted) {
    try {
      return await open();
    } catch (error) {
      if (error instanceof MeshError && error.next === "stalled") throw error;
      by.log.warn({ err: error }, `${what} cannot be opened yet, tried again`);
      await tries.pause(by.signal);
    }
  }
  return null;
}

/** The addresses of the mesh-* seats while no module holds them. */
function contextSeats(config: ControllerConfig, http: string): Record<string, string> {
  const at = (url: string, port: number) => {
    const { hostname, port: own } = new URL(url);
    return `${hostname}:${own || port}`;
  };
  const broker = config.broker.split(",")[0] as string;
  return {
    "mesh-store": at(config.store, 5432),
    "mesh-broker": at(broker.includes("://") ? broker : `nats://${broker}`, 4222),
    "mesh-controller": at(http, 80),
    "mesh-builder": at(http, 80),
  };
}

/** A notice is only a hint: where it is lost, the timer finds what it was about. */
function notice(broker: Broker, log: Log, kind: string): void {
  try {
    broker.js.publish(subjects.control(kind), new Uint8Array()).catch((error: unknown) => {
      log.warn({ err: error, kind }, "a notice was not taken; the timer finds it");
    });
  } catch (error) {
    log.warn({ err: error, kind }, "a notice was not sent; the timer finds it");
  }
}

async function end(
  http: { close(): Promise<void> },
  broker: Broker,
  inventory: Inventory | null,
  reader: CatalogueReader | null,
): Promise<void> {
  await broker.close();
  await reader?.close();
  await inventory?.close();
  await http.close();
}

function within(promise: Promise<void>, ms: number): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<void>((done) => {
    timer = setTimeout(done, ms);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}
