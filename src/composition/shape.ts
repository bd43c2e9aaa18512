import { compareText, type Issue, moduleFile, nodeFile } from "./issues.ts";
import type { CompiledModule, CompiledResource } from "./module.ts";
import { orderBy } from "./order.ts";
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
  const { order, cycle } = orderBy(
    all,
    (item) => item.compiled.name,
    (item) => item.compiled.requires,
  );
  const byName = new Map(order.map((item) => [item.compiled.name, item]));
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

function cycleIssue(view: NodeView, cycle: string[]): Issue {
  return {
    file: moduleFile(cycle[0] as string),
    path: ["requires"],
    message: `node ${view.name}: modules require each other: ${cycle.join(" -> ")}; take one "requires" away`,
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

interface Owner {
  resource: CompiledResource;
  module: CompiledModule;
}

/** Two owners of one path, account or process name; a path below a file; one port of two modules. */
function claimIssues(view: NodeView, order: readonly Placed[], mixed: boolean, issues: Issue[]): void {
  const owners = new Map<string, Owner>();
  const files: Array<[path: string, owner: Owner]> = [];
  const ports = new Map<number, string>();
  for (const { placed, compiled } of order) {
    for (const resource of compiled.resources) {
      if (placed.without?.has(resource.id)) continue;
      for (const claim of resource.claims) {
        const key = `${claim.space}:${claim.name}`;
        const other = owners.get(key);
        if (other)
          issues.push(clash(view, `${claim.space} ${claim.name}`, other, { resource, module: compiled }));
        else owners.set(key, { resource, module: compiled });
        if (claim.space === "path") files.push([claim.name, { resource, module: compiled }]);
      }
    }
    // In a mixed catalogue the old owner of a port has been taken out already, by its process.
    for (const [name, port] of mixed ? [] : compiled.fixedPorts) {
      const other = ports.get(port);
      if (other !== undefined) {
        const message = `node ${view.name}: port ${port} has two owners: ${other} and module ${compiled.name} (port ${name}); make one of them "auto" or another number`;
        issues.push({ file: moduleFile(compiled.name), path: ["ports", name], message });
      }
      ports.set(port, `module ${compiled.name} (port ${name})`);
    }
  }
  for (const [path, owner] of files) belowFile(view, path, owner, owners, issues);
}

function belowFile(
  view: NodeView,
  path: string,
  owner: Owner,
  owners: ReadonlyMap<string, Owner>,
  issues: Issue[],
): void {
  for (let end = path.lastIndexOf("/"); end > 0; end = path.lastIndexOf("/", end - 1)) {
    const above = owners.get(`path:${path.slice(0, end)}`);
    if (!above || above.resource.type === "directory") continue;
    issues.push(clash(view, `path ${path} lies below the file ${path.slice(0, end)}, which`, above, owner));
  }
}

function clash(view: NodeView, what: string, one: Owner, other: Owner): Issue {
  const name = (owner: Owner) => `module ${owner.module.name} (${owner.resource.id})`;
  const owned = what.endsWith("which")
    ? `${what} is of ${name(one)}; it is of`
    : `${what} has two owners: ${name(one)} and`;
  return {
    file: moduleFile(other.module.name),
    path: resourcePath(other),
    message: `node ${view.name}: ${owned} ${name(other)}; only one may have it`,
  };
}

function resourcePath({ resource, module }: Owner): Array<string | number> {
  const own = resource.id.slice(module.name.length + 1);
  const index = module.version.manifest.resources.findIndex((r) => {
    const id = r.id ?? ("name" in r ? r.name : "");
    return id === own || `${id}-prepare` === own;
  });
  return index < 0 ? ["state"] : ["resources", index];
}
