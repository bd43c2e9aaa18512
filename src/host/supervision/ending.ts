import { groupMembers } from "./cgroup.ts";
import type { Run } from "./record.ts";
import type { Shared } from "./shared.ts";
import { learnMain, logFileOf } from "./start.ts";
import { membersOf, stopRun } from "./tree.ts";
import type { ProcessSpec } from "./types.ts";

const DEFAULT_STOP = { signal: "SIGTERM", grace: 10_000 };

/** Ends a run and everything of it. Waiting ends with the supervisor. @throws StopFailed */
export function endRun(shared: Shared, id: string, run: Run, spec: ProcessSpec | null): Promise<void> {
  const { proc, clock, signal } = shared;
  learnMain(shared, run);
  const policy = spec?.stop ?? DEFAULT_STOP;
  return stopRun({
    proc,
    clock: { ...clock, sleep: (ms) => clock.sleep(ms, signal) },
    id,
    run,
    log: logFileOf(shared, id),
    signal: policy.signal as NodeJS.Signals,
    grace: policy.grace,
  });
}

/** Ends what a main process that has ended left behind; the number of them. */
export async function sweep(shared: Shared, id: string, run: Run, spec: ProcessSpec | null): Promise<number> {
  const onlyParent = (group: string) => groupMembers(group).every((pid) => pid === run.parent?.pid);
  if (run.cgroups.length > 0 && run.cgroups.every(onlyParent)) return 0;
  const left = membersOf(shared.proc, run, logFileOf(shared, id));
  if (left.length > 0) await endRun(shared, id, { ...run, main: null }, spec);
  return left.length;
}
