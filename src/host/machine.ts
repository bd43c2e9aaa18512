import { join } from "node:path";
import { systemClock } from "../io/clock.ts";
import type { Fault } from "../io/faults.ts";
import type { HostEvent } from "../report/schema.ts";
import type { HostPlace } from "../resources/driver.ts";
import { type Assembly, assemble } from "./assemble.ts";
import type { HostEnvironment } from "./config.ts";
import { createLoop, type HostLoop } from "./loop.ts";
import { readOnlySupervisor } from "./readonly.ts";
import { type Loaded, lockState, openStore, type StateStore } from "./state.ts";
import { createSupervisor } from "./supervision/supervisor.ts";
import type { Supervisor } from "./supervision/types.ts";

/** A host's parts on one machine, before anything outside it is asked. */
export interface Machine {
  place: HostPlace;
  store: StateStore;
  loaded: Loaded;
  supervisor: Supervisor;
  assembly: Assembly;
  loop: HostLoop;
  /** Stops supervising and frees the lock; what runs lives on. */
  close(): Promise<void>;
}

export interface Listeners {
  onEvent(event: HostEvent): void;
  onAccount(now: boolean): void;
  onError(error: unknown): void;
}

export const supervisionDir = (place: HostPlace) => join(place.stateDir, "supervision");

export function superviseAt(place: HostPlace, environment: HostEnvironment, fault: Fault): Supervisor {
  return createSupervisor({
    dir: supervisionDir(place),
    invoker: place.invoker,
    real: place.real,
    path: environment.path,
    ...(environment.lang ? { lang: environment.lang } : {}),
    fault,
  });
}

/** Takes the state folder (throws AlreadyRunning) and adopts what runs. With `noop` nothing is taken and nothing can change. */
export async function openMachine(
  place: HostPlace,
  environment: HostEnvironment,
  fault: Fault,
  listeners: Listeners,
  noop = false,
): Promise<Machine> {
  const lock = noop ? null : lockState(place.stateDir);
  try {
    const store = openStore(place.stateDir, fault, noop);
    const loaded = store.load();
    const supervisor = noop
      ? readOnlySupervisor(supervisionDir(place))
      : superviseAt(place, environment, fault);
    const live = {
      checkEvery: () => loop.declared()?.body.host.check ?? 5_000,
      signal: () => loop.passSignal(),
    };
    const assembly = assemble(place, supervisor, fault, live);
    const loop: HostLoop = createLoop({
      place,
      store,
      loaded,
      drivers: assembly.drivers,
      supervisor,
      clock: systemClock,
      fault,
      forgetAccounts: assembly.accounts.forget,
      removeFolder: assembly.files.removeDirectory,
      cleanTemp: assembly.files.clean,
      ...listeners,
    });
    await supervisor.resume();
    const close = async () => {
      await supervisor.close();
      lock?.free();
    };
    return { place, store, loaded, supervisor, assembly, loop, close };
  } catch (error) {
    lock?.free();
    throw error;
  }
}
