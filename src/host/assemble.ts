import { mkdir, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type Clock, systemClock } from "../io/clock.ts";
import { exec } from "../io/exec.ts";
import type { Fault } from "../io/faults.ts";
import { createFiles, type Files } from "../io/files.ts";
import { createDirectoryDriver } from "../resources/directory/driver.ts";
import type { HostPlace } from "../resources/driver.ts";
import { createBackups } from "../resources/file/backups.ts";
import { createFileDriver } from "../resources/file/driver.ts";
import { createGroupDriver } from "../resources/group/driver.ts";
import { createProcessDriver } from "../resources/process/driver.ts";
import { type Accounts, createAccounts } from "../resources/user/accounts.ts";
import { createUserDriver } from "../resources/user/driver.ts";
import type { Drivers } from "./execute.ts";
import { createObjectCache, type ObjectCache } from "./objects.ts";
import type { Supervisor } from "./supervision/types.ts";

export interface Assembly {
  drivers: Drivers;
  accounts: Accounts;
  files: Files;
  objects: ObjectCache;
}

/** What changes while the host lives: how often a service is checked (ms), and when waiting for a run-once ends. */
export interface Live {
  checkEvery(): number;
  signal(): AbortSignal | undefined;
}

function objectFiles(dir: string) {
  return {
    read: (name: string) => readFile(join(dir, name)).catch(() => null),
    async write(name: string, bytes: Uint8Array) {
      await mkdir(dir, { recursive: true, mode: 0o700 });
      const temp = join(dir, `${name}.tmp`);
      await writeFile(temp, bytes, { mode: 0o600 });
      await rename(temp, join(dir, name));
    },
    list: () => readdir(dir).catch(() => [] as string[]),
    remove: (name: string) => rm(join(dir, name), { force: true }),
  };
}

/** The parts that touch the machine, one driver per kind. */
export function assemble(
  place: HostPlace,
  supervisor: Supervisor,
  fault: Fault,
  live: Live,
  clock: Clock = systemClock,
): Assembly {
  const now = () => clock.now();
  const accounts = createAccounts(exec);
  const files = createFiles(place.root, fault);
  const objects = createObjectCache(objectFiles(join(place.stateDir, "objects")));
  const backups = createBackups(join(place.stateDir, "backups"), now);
  const drivers: Drivers = {
    group: createGroupDriver(place, accounts) as Drivers["group"],
    user: createUserDriver(place, accounts) as Drivers["user"],
    directory: createDirectoryDriver(place, accounts, files) as Drivers["directory"],
    file: createFileDriver({ place, accounts, files, backups, objects, now }) as Drivers["file"],
    process: createProcessDriver({
      place,
      supervisor,
      get checkEvery() {
        return live.checkEvery();
      },
      get signal() {
        return live.signal();
      },
    }) as Drivers["process"],
  };
  return { drivers, accounts, files, objects };
}
