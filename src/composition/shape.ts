import { compareText, type Issue, moduleFile, nodeFile } from "./issues.ts";
import type { CompiledModule } from "./module.ts";
import { orderBy } from "./order.ts";
import type { CompiledResource } from "./resource.ts";
import type { NodeView, PlacedModule } from "./view.ts";

export interface Placed {
  placed: PlacedModule;
  compiled: CompiledModule;
}

/** What follows from a node's placement alone: order of its modules, what they claim, and what is wrong with it. */
export interface NodeShape {
  modules: readonly Placed[];
  byName: ReadonlyMap<string, Placed>;
  /** Keys `module/port`, sorted. */
  autoPorts: readonly string[];
  fixedPorts: ReadonlySet<number>;
  /** Its modules that hold seats. */
  holders: readonly Placed[];
  /** Seats that its modules use. */
  seatsUsed: readonly string[];
  issues: readonly Issue[];
}

/** @param mixed a tier's mixed catalogue: what old and new versions ask of each other is not held against them */
export function shapeOf(
  view: NodeView,
  compile: (placed: PlacedModule) => CompiledModule,
  mixed: boolean,
): NodeShape {
  const all: Placed[] = [];
  for (const placed of view.modules.values()) all.push({ placed, compiled: compile(placed) });
  all.sort((a, b) => a.compiled.tier - b.compiled.tier || compareText(a.compiled.name, b.compiled.name));
  const issues: Issue[] = [];
  const byName = new Map(all.map((item) => [item.compiled.name, item]));
  const { order, cycle } = isOrdered(all, byName)
    ? { order: all, cycle: null }
    : orderBy(
        all,
        (item) => item.compiled.name,
        (item) => item.compiled.requires,
      );
  if (cycle && !mixed) issues.push(cycleIssue(view, cycle));
  if (!mixed) requireIssues(view, order, byName, issues);
  foreignIssues(view, order, byName, mixed, issues);
  claimIssues(view, order, mixed, issues);
  const fixedPorts = new Set<number>();
  const autoPorts: string[] = [];
  const seats = new Set<string>();
  for (const { compiled } of order) {
    for (const [, port] of compiled.fixedPorts) fixedPorts.add(port);
    for (const port of compiled.autoPorts) autoPorts.push(`${compiled.name}/${port}`);
    for (const use of compiled.seatUses) seats.add(use.seat);
  }
  autoPorts.sort(compareText);
  return {
    modules: order,
    byName,
    autoPorts,
    fixedPorts,
    holders: order.filter(({ compiled }) => compiled.seats.length > 0),
    seatsUsed: [...seats].sort(compareText),
    issues,
  };
}

/** Most nodes are: what a module requires has a lower tier or an earlier name, or is not there. */
function isOrdered(all: readonly Placed[], byName: ReadonlyMap<string, Placed>): boolean {
  const seen = new Set<string>();
  for (const { compiled } of all) {
    for (const name of compiled.requires) if (!seen.has(name) && byName.has(name)) return false;
    seen.add(compiled.name);
  }
  return true;
}

function cycleIssue(view: NodeView, cycle: string[]): Issue {
  return {
    file: moduleFile(cycle[0] as string),
    path: ["requires"],
    message: `node ${view.name}: modules require each other: ${cycle.join(" -> ")}; take one "requires" away`,
    certain: true,
  };
}

function requireIssues(
  view: NodeView,
  order: readonly Placed[],
  byName: ReadonlyMap<string, Placed>,
  issues: Issue[],
): void {
  for (const { compiled } of order) {
    for (const name of compiled.requires) {
      const other = byName.get(name)?.compiled;
      if (other && other.tier <= compiled.tier) continue;
      const path = ["requires", compiled.version.manifest.requires.indexOf(name)];
      const start = `node ${view.name}: module ${compiled.name} (tier ${compiled.tier}) requires ${name}`;
      const message = other
        ? `${start}, which is of tier ${other.tier}; a required module is of the same tier or a lower one`
        : `${start}, which is not on this node; add ${name} to ${nodeFile(view.name)} or to a group that matches it`;
      issues.push({ file: moduleFile(compiled.name), path, message });
    }
  }
}

/** References to other modules' resources: the module must be here and have that id. */
function foreignIssues(
  view: NodeView,
  order: readonly Placed[],
  byName: ReadonlyMap<string, Placed>,
  mixed: boolean,
  issues: Issue[],
): void {
  if (mixed) return;
  const edges = new Map<string, string[]>();
  for (const { compiled } of order) {
    for (const { id, path } of compiled.foreign) {
      const [owner = "", own = ""] = id.split(".", 2);
      const other = byName.get(owner)?.compiled;
      if (other?.byId.has(id)) continue;
      const found = other
        ? `module ${owner} has no resource "${own}"; it has ${[...other.byId.keys()].join(", ") || "none"}`
        : `module ${owner} is not on node ${view.name}`;
      issues.push({
        file: moduleFile(compiled.name),
        path,
        message: `module ${compiled.name}: ${id}: ${found}`,
      });
    }
    if (compiled.foreign.length > 0) {
      for (const resource of compiled.resources) edges.set(resource.id, [...resource.restartOn]);
    }
  }
  if (edges.size === 0) return;
  const { cycle } = orderBy(
    [...edges.keys()],
    (id) => id,
    (id) => edges.get(id) ?? [],
  );
  // One within a single module is told of the module itself.
  if (!cycle || new Set(cycle.map((id) => id.split(".")[0])).size === 1) return;
  const message = `node ${view.name}: processes restart on each other: ${cycle.join(" -> ")}; take one "restartOn" away`;
  issues.push({ file: moduleFile((cycle[0] as string).split(".")[0] as string), path: [], message });
}

/** Two owners of one path, account or process name; a path below a file; one port of two modules. */
function claimIssues(view: NodeView, order: readonly Placed[], mixed: boolean, issues: Issue[]): void {
  const owners = new Map<string, CompiledResource>();
  const below: CompiledResource[] = [];
  const report = (what: string, one: CompiledResource, other: CompiledResource) =>
    issues.push(clash(view, order, what, one, other));
  for (const { placed, compiled } of order) {
    for (const resource of compiled.resources) {
      if (placed.without?.has(resource.id)) continue;
      for (const key of resource.keys) {
        const other = owners.get(key);
        if (other) report(`${key.replace(":", " ")} has two owners:`, other, resource);
        else owners.set(key, resource);
      }
      if (resource.above.length > 0) below.push(resource);
    }
  }
  for (const resource of below) {
    for (const key of resource.above) {
      const above = owners.get(key);
      if (above && above.type !== "directory")
        report(`a path lies below the file ${key.slice(5)}:`, above, resource);
    }
  }
  // In a mixed catalogue the old owner of a port has been taken out already, by its process.
  if (!mixed) portIssues(view, order, issues);
}

function portIssues(view: NodeView, order: readonly Placed[], issues: Issue[]): void {
  const ports = new Map<number, string>();
  for (const { compiled } of order) {
    for (const [name, port] of compiled.fixedPorts) {
      const own = `module ${compiled.name} (port ${name})`;
      const other = ports.get(port);
      ports.set(port, own);
      if (other === undefined) continue;
      const message = `node ${view.name}: port ${port} has two owners: ${other} and ${own}; make one of them "auto" or another number`;
      issues.push({ file: moduleFile(compiled.name), path: ["ports", name], message, certain: true });
    }
  }
}

function clash(
  view: NodeView,
  order: readonly Placed[],
  what: string,
  one: CompiledResource,
  other: CompiledResource,
): Issue {
  const name = (resource: CompiledResource) => `module ${resource.module} (${resource.id})`;
  return {
    file: moduleFile(other.module),
    path: resourcePath(order, other),
    message: `node ${view.name}: ${what} ${name(one)} and ${name(other)}; only one may be there`,
    certain: true,
  };
}

function resourcePath(order: readonly Placed[], resource: CompiledResource): Array<string | number> {
  const own = resource.id.slice(resource.module.length + 1);
  const module = order.find(({ compiled }) => compiled.name === resource.module) as Placed;
  const index = module.placed.version.manifest.resources.findIndex((r) => {
    const id = r.id ?? ("name" in r ? r.name : "");
    return id === own || `${id}-prepare` === own;
  });
  return index < 0 ? ["state"] : ["resources", index];
}
