import { mkdirSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/**
 * Where processes can be kept together and bounded. `track` is the hierarchy by which everything descended from a
 * process is found; `memory` and `cpu` bound it; null where this machine does not let us.
 */
export interface Cgroups {
  track: string | null;
  memory: { root: string; v2: boolean } | null;
  cpu: { root: string; v2: boolean } | null;
  /** Further hierarchies to leave the host's group in (systemd's own, on machines with both kinds). */
  leave: string[];
}

export const noCgroups: Cgroups = { track: null, memory: null, cpu: null, leave: [] };

interface Mount {
  at: string;
  v2: boolean;
  options: string[];
}

function mounts(): Mount[] {
  try {
    return readFileSync("/proc/self/mounts", "utf8")
      .split("\n")
      .map((line) => line.split(" "))
      .filter((fields) => fields[2] === "cgroup" || fields[2] === "cgroup2")
      .map((fields) => ({ at: fields[1]!, v2: fields[2] === "cgroup2", options: fields[3]!.split(",") }));
  } catch {
    return [];
  }
}

/** Makes `group` there and takes it only if a group in it can be made and removed again. */
function usable(root: string, group: string): string | null {
  const at = join(root, group);
  try {
    mkdirSync(at, { recursive: true });
    const probe = join(at, "probe");
    mkdirSync(probe, { recursive: true });
    rmdirSync(probe);
    return at;
  } catch {
    return null;
  }
}

/** Lets the groups below use a controller; false where the kernel or who set it up says no. */
function delegate(root: string, group: string, controller: string): boolean {
  try {
    for (const at of [root, group]) {
      const on = readFileSync(join(at, "cgroup.subtree_control"), "utf8").split(/\s+/);
      if (!on.includes(controller)) writeFileSync(join(at, "cgroup.subtree_control"), `+${controller}`);
    }
    return true;
  } catch {
    return false;
  }
}

/** Looks once, by trying, what can be written. `group` is the name of the folder made in each hierarchy. */
export function findCgroups(group: string): Cgroups {
  const all = mounts();
  const two = all.find((m) => m.v2);
  const unified = two ? usable(two.at, group) : null;
  const one = (controller: string): string | null => {
    const mount = all.find((m) => !m.v2 && m.options.includes(controller));
    return mount ? usable(mount.at, group) : null;
  };
  const bound = (controller: string) => {
    if (two && unified && delegate(two.at, unified, controller)) return { root: unified, v2: true };
    const root = one(controller);
    return root ? { root, v2: false } : null;
  };
  const systemd = one("name=systemd");
  const track = unified ?? one("freezer") ?? one("pids");
  return { track, memory: bound("memory"), cpu: bound("cpu"), leave: systemd ? [systemd] : [] };
}

/** Makes the groups of one run and sets its bounds; the folders the run has to join, the tracking one first. */
export function makeGroups(
  cgroups: Cgroups,
  name: string,
  limits: { memory: number | null; cpu: number | null },
): string[] {
  const made = new Set<string>();
  const make = (root: string) => {
    const at = join(root, name);
    mkdirSync(at, { recursive: true });
    made.add(at);
    return at;
  };
  if (cgroups.track) make(cgroups.track);
  for (const root of cgroups.leave) make(root);
  if (cgroups.memory && limits.memory !== null) {
    const at = make(cgroups.memory.root);
    writeFileSync(join(at, cgroups.memory.v2 ? "memory.max" : "memory.limit_in_bytes"), `${limits.memory}`);
  }
  if (cgroups.cpu && limits.cpu !== null) {
    const at = make(cgroups.cpu.root);
    const quota = Math.max(1_000, Math.round(limits.cpu * 100_000));
    if (cgroups.cpu.v2) writeFileSync(join(at, "cpu.max"), `${quota} 100000`);
    else {
      writeFileSync(join(at, "cpu.cfs_period_us"), "100000");
      writeFileSync(join(at, "cpu.cfs_quota_us"), `${quota}`);
    }
  }
  return [...made];
}

/** Pids in a group and in those that the program itself made below it. */
export function groupMembers(at: string): number[] {
  try {
    const own = readFileSync(join(at, "cgroup.procs"), "utf8").split("\n").filter(Boolean).map(Number);
    const below = readdirSync(at, { withFileTypes: true }).filter((entry) => entry.isDirectory());
    return [...own, ...below.flatMap((entry) => groupMembers(join(at, entry.name)))];
  } catch {
    return [];
  }
}

/** Removes a group and what is below it, where they are empty; whether it is gone. */
export function dropGroup(at: string): boolean {
  try {
    for (const entry of readdirSync(at, { withFileTypes: true }))
      if (entry.isDirectory()) dropGroup(join(at, entry.name));
    rmdirSync(at);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "ENOENT";
  }
}

export function rootsOf({ track, memory, cpu, leave }: Cgroups): string[] {
  const roots = [track, memory?.root, cpu?.root, ...leave].filter((root) => typeof root === "string");
  return [...new Set(roots)];
}

/** Removes the empty groups that a host left which was ended. */
export function dropLeftGroups(cgroups: Cgroups): void {
  for (const root of rootsOf(cgroups))
    for (const entry of readdirSync(root, { withFileTypes: true }))
      if (entry.isDirectory()) dropGroup(join(root, entry.name));
}
