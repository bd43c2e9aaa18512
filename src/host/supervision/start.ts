import { closeSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { dropGroup, groupMembers, makeGroups } from "./cgroup.ts";
import { type Account, environmentOf, findAccount } from "./environment.ts";
import { ProcessUserMissing } from "./errors.ts";
import { asUser, dropRunFiles, launch, newBase, preflight, readMain } from "./launch.ts";
import { openLog, sizeOf } from "./logs.ts";
import { incarnationOf, isAlive } from "./proc.ts";
import type { ProcessRecord, Run } from "./record.ts";
import { keyOf, type Shared } from "./shared.ts";
import { waitUntil } from "./tree.ts";
import type { ProcessSpec } from "./types.ts";

export const logFileOf = (shared: Shared, id: string) => join(shared.records.folder(id), "output.log");

export interface Prepared {
  env: Record<string, string>;
  /** A command of this process' account, ready to spawn. */
  as(command: string[]): string[];
}

/** @throws ProcessUserMissing, EnvFileUnreadable */
export async function prepare(shared: Shared, spec: ProcessSpec): Promise<Prepared> {
  const account = await accountOf(shared, spec);
  const env = environmentOf(spec, account, shared.base);
  const drop = spec.user !== null && shared.invoker.uid === 0;
  return { env, as: (command) => (drop ? asUser(command, account.name, account.gid) : command) };
}

async function accountOf(shared: Shared, spec: ProcessSpec): Promise<Account> {
  if (spec.user === null) return shared.invoker;
  const account = await findAccount(spec.id, spec.user);
  if (shared.invoker.uid !== 0 && account.uid !== shared.invoker.uid)
    throw new ProcessUserMissing({
      id: spec.id,
      user: spec.user,
      why: `is not ${shared.invoker.name}, and only root runs programs as others`,
    });
  return account;
}

/**
 * Writes the intent, spawns, and records who it is. `record.run` is set from before the spawn on; should this host end at
 * any point, the next one finds the run by its base or gives it up before it began.
 * @throws what `prepare` and `preflight` throw, SpawnFailed, or what kept the intent from being written
 * @param ended called when the parent that was spawned ends
 */
export async function begin(
  shared: Shared,
  record: ProcessRecord,
  spec: ProcessSpec,
  ended: () => void,
): Promise<void> {
  const { env, as } = await prepare(shared, spec);
  preflight(spec, env.PATH ?? "");
  const base = newBase(shared.runs, spec.id, keyOf(spec.digest));
  const log = logFileOf(shared, spec.id);
  mkdirSync(shared.records.folder(spec.id), { recursive: true, mode: 0o700 });
  const run: Run = {
    base,
    key: keyOf(spec.digest),
    at: shared.clock.now(),
    parent: null,
    main: null,
    seen: [],
    cgroups: makeGroups(shared.cgroups, base.slice(shared.runs.length + 1), spec.limits),
    logAt: sizeOf(log),
    passed: false,
  };
  record.run = run;
  record.since = run.at;
  record.policy = { ...record.policy, due: null };
  try {
    shared.records.save(record);
  } catch (error) {
    abandon(record, run);
    throw error;
  }
  shared.fault("supervision:intent");
  let fd: number | null = null;
  try {
    fd = openLog(log);
    const child = await launch({ spec, base, command: as(spec.command), env, log: fd, cgroups: run.cgroups });
    child.once("exit", ended);
    shared.fault("supervision:spawned");
    run.parent = incarnationOf(shared.proc, child.pid!);
  } catch (error) {
    // Only a spawn that failed comes here: there is no child.
    abandon(record, run);
    throw error;
  } finally {
    if (fd !== null) closeSync(fd);
  }
  await waitUntil(shared.clock, 2_000, () => learnMain(shared, run) || !isAlive(shared.proc, run.parent));
  if (run.main && !joined(run)) run.cgroups = [];
}

/** A parent that could not join its group (a bound of the machine) is followed as where there are none. */
function joined(run: Run): boolean {
  const [track] = run.cgroups;
  return track === undefined || groupMembers(track).includes(run.main?.pid ?? 0);
}

function abandon(record: ProcessRecord, run: Run): void {
  record.run = null;
  for (const group of run.cgroups) dropGroup(group);
  dropRunFiles(run.base);
}

/** The main process as its parent's subshell wrote it down, believed only while it is in the parent's session. */
export function learnMain(shared: Shared, run: Run): boolean {
  if (isAlive(shared.proc, run.main)) return true;
  const pid = readMain(run.base);
  if (typeof pid !== "number" || !run.parent) return false;
  const stat = shared.proc.stat(pid);
  if (!stat || stat.start < run.parent.start) return false;
  if (stat.ppid !== run.parent.pid && stat.session !== run.parent.pid) return false;
  const main = incarnationOf(shared.proc, pid);
  if (main) run.main = main;
  return main !== null;
}
