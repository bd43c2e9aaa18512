import type { Clock } from "../../io/clock.ts";
import { groupMembers } from "./cgroup.ts";
import { StopFailed } from "./errors.ts";
import {
  ended,
  type Incarnation,
  incarnationOf,
  isAlive,
  type ProcFs,
  type ProcStat,
  signal,
} from "./proc.ts";
import type { Run } from "./record.ts";

export interface Snapshot {
  stats: Map<number, ProcStat>;
  children: Map<number, number[]>;
}

/** One look at all of /proc; not for every second. */
export function snapshot(proc: ProcFs): Snapshot {
  const stats = new Map<number, ProcStat>();
  const children = new Map<number, number[]>();
  for (const pid of proc.pids()) {
    const stat = proc.stat(pid);
    if (!stat || ended(stat)) continue;
    stats.set(pid, stat);
    const siblings = children.get(stat.ppid);
    if (siblings) siblings.push(pid);
    else children.set(stat.ppid, [pid]);
  }
  return { stats, children };
}

/**
 * Everything of a run that still lives, its `sh` parent left out. Where there is a cgroup, that says it all. Elsewhere: its
 * session, whatever descends from it, what was seen to descend from it before, and what still writes to its output file
 * (`log`; null to leave that out), which is how a daemon is found that left session and parents.
 */
export function membersOf(proc: ProcFs, run: Run, log: string | null, look?: Snapshot): Incarnation[] {
  const found = new Set<number>();
  for (const group of run.cgroups) for (const pid of groupMembers(group)) found.add(pid);
  for (const who of [run.main, ...run.seen]) if (isAlive(proc, who)) found.add(who.pid);
  if (run.cgroups.length === 0 && run.parent) {
    const { stats, children } = look ?? snapshot(proc);
    addBySession(proc, run.parent, stats, found);
    if (log)
      for (const stat of stats.values())
        if (!found.has(stat.pid) && stat.start >= run.parent.start && writesTo(proc, stat.pid, log))
          found.add(stat.pid);
    addDescendants(children, found);
  }
  if (run.parent) found.delete(run.parent.pid);
  found.delete(process.pid);
  return [...found].map((pid) => incarnationOf(proc, pid)).filter((who) => who !== null);
}

function addBySession(
  proc: ProcFs,
  parent: Incarnation,
  stats: Map<number, ProcStat>,
  to: Set<number>,
): void {
  if (!sessionIsOurs(proc, parent, stats)) return;
  if (isAlive(proc, parent)) to.add(parent.pid);
  for (const stat of stats.values()) if (stat.session === parent.pid) to.add(stat.pid);
}

function addDescendants(children: Map<number, number[]>, to: Set<number>): void {
  const queue = [...to];
  for (let pid = queue.pop(); pid !== undefined; pid = queue.pop())
    for (const child of children.get(pid) ?? [])
      if (!to.has(child)) {
        to.add(child);
        queue.push(child);
      }
}

/** A session number stays taken while the session has members; a leader of another life means it was given out anew. */
function sessionIsOurs(proc: ProcFs, parent: Incarnation, stats: Map<number, ProcStat>): boolean {
  if (parent.boot !== proc.bootId() || parent.ns !== proc.pidNamespace()) return false;
  const leader = stats.get(parent.pid);
  return !leader || leader.start === parent.start;
}

function writesTo(proc: ProcFs, pid: number, log: string): boolean {
  const descriptors = proc.descriptors(pid);
  return descriptors.get(1) === log || descriptors.get(2) === log;
}

/** Waits in short, growing steps; true as soon as `done` holds. */
export async function waitUntil(clock: Clock, ms: number, done: () => boolean): Promise<boolean> {
  const end = clock.monotonic() + ms;
  for (let step = 2; ; step = Math.min(50, step * 2)) {
    if (done()) return true;
    const left = end - clock.monotonic();
    if (left <= 0) return false;
    await clock.sleep(Math.min(step, left));
  }
}

/** How long the kernel may take to end what got SIGKILL. */
const KILL_BOUND = 5_000;

export interface StopRequest {
  proc: ProcFs;
  clock: Clock;
  id: string;
  run: Run;
  log: string;
  signal: NodeJS.Signals;
  grace: number;
}

/**
 * Ends a run: the signal to its main process, then, once that is gone, to what it left behind; SIGKILL to everything
 * that is there when `grace` is over, until a whole look finds nothing.
 * @throws StopFailed when something survives SIGKILL for 5 s (uninterruptible in the kernel)
 */
export async function stopRun(request: StopRequest): Promise<void> {
  const { proc, clock, run, grace } = request;
  const began = clock.monotonic();
  const left = () => Math.max(0, grace - (clock.monotonic() - began));
  const all = () => membersOf(proc, run, request.log);
  if (run.main && signal(proc, run.main, request.signal)) {
    await waitUntil(clock, grace, () => !isAlive(proc, run.main));
  }
  let rest = all();
  if (rest.length > 0 && left() > 0) {
    for (const who of rest) signal(proc, who, request.signal);
    await waitUntil(clock, left(), () => !rest.some((who) => isAlive(proc, who)));
    rest = all();
  }
  const killing = clock.monotonic();
  while (rest.length > 0) {
    for (const who of rest) signal(proc, who, "SIGKILL");
    const spent = clock.monotonic() - killing;
    if (spent > KILL_BOUND)
      throw new StopFailed({ id: request.id, pids: rest.map((who) => who.pid), afterMs: Math.round(spent) });
    await waitUntil(clock, 200, () => !rest.some((who) => isAlive(proc, who)));
    rest = all();
  }
  await endParent(request);
}

/** The parent ends by itself when its command has; one that was stopped or hangs is killed. */
async function endParent({ proc, clock, run, id }: StopRequest): Promise<void> {
  const parent = run.parent;
  if (!parent || (await waitUntil(clock, 500, () => !isAlive(proc, parent)))) return;
  signal(proc, parent, "SIGKILL");
  if (!(await waitUntil(clock, KILL_BOUND, () => !isAlive(proc, parent))))
    throw new StopFailed({ id, pids: [parent.pid], afterMs: KILL_BOUND });
}
