import type { ModuleVersion } from "../catalogue/catalogue.ts";
import { directoryDraft } from "../resources/directory/compile.ts";
import { type Field, type Kind, type Policies, RANK } from "../resources/kind.ts";
import { KINDS } from "../resources/kinds.ts";
import { type BodySize, bodySizes, type StoredObject } from "./chunks.ts";
import { compareText, type Issue } from "./issues.ts";
import { knownNames } from "./nearest.ts";
import { orderBy } from "./order.ts";
import type { Names, Slot } from "./placeholders.ts";
import {
  type CompiledResource,
  compileResource,
  type Drafted,
  type FixedResource,
  fixedOf,
} from "./resource.ts";
import { Gathering, type Ids, scopeOf } from "./scope.ts";
import { type SettingSpec, settingSpecs, wrongValue } from "./settings.ts";

/** One version of a module with its placeholders cut out: what is the same on every node. Resources are in order of applying. */
export interface CompiledModule {
  version: ModuleVersion;
  name: string;
  tier: number;
  requires: readonly string[];
  settings: ReadonlyMap<string, SettingSpec>;
  fixedPorts: ReadonlyArray<readonly [name: string, port: number]>;
  autoPorts: readonly string[];
  seats: ReadonlyArray<readonly [seat: string, port: string]>;
  slots: readonly Slot[];
  /** Uses the node's own name or address, so that no two nodes share it. */
  ofNode: boolean;
  /** Where each seat is used: its JSON path and the resource. */
  seatUses: ReadonlyArray<{ seat: string; path: Field; label: string }>;
  resources: readonly CompiledResource[];
  byId: ReadonlyMap<string, CompiledResource>;
  /** By full id. */
  fixed: ReadonlyMap<string, FixedResource>;
  paths: ReadonlyMap<string, string>;
  /** Full ids of other modules' resources whose digests are part of this module's, with where they are named. */
  foreign: ReadonlyArray<{ id: string; path: Field }>;
  /** Bodies that values are filled into. */
  bodies: readonly BodySize[];
  /** Bodies in the object store that are the same on every node. */
  objects: ReadonlyMap<string, StoredObject>;
  issues: readonly Issue[];
}

/** Compiles one version of a module. Never throws: what is wrong with it is in `issues`. */
export function compileModule(version: ModuleVersion, policies: Policies): CompiledModule {
  const { manifest, name } = version;
  const gathering = new Gathering(version);
  const settings = settingSpecs(manifest);
  for (const [key, spec] of settings) {
    const wrong = spec.fallback === undefined ? null : wrongValue(spec, spec.fallback);
    if (wrong) gathering.issue(["settings", key], `setting ${key} of module ${name}: ${wrong}`);
  }
  const ids = idsOf(version, gathering);
  const resources = compileResources(version, policies, { ids, settings }, gathering);
  checkRestarts(resources, version, gathering);
  const fixedPorts = Object.entries(manifest.ports).filter(
    (port): port is [string, number] => port[1] !== "auto",
  );
  checkPorts(version, fixedPorts, gathering);
  return {
    version,
    name,
    tier: manifest.tier,
    requires: [...new Set(manifest.requires)].sort(compareText),
    settings,
    fixedPorts,
    autoPorts: Object.keys(manifest.ports)
      .filter((port) => manifest.ports[port] === "auto")
      .sort(compareText),
    seats: Object.entries(manifest.seats).map(([seat, { port }]) => [seat, port] as const),
    slots: gathering.slots,
    ofNode: gathering.slots.some(({ kind }) => kind === "node" || kind === "address" || kind === "host"),
    seatUses: gathering.seatUses,
    resources,
    bodies: resources.flatMap(({ chunks }) => bodySizes(chunks)),
    byId: new Map(resources.map((resource) => [resource.id, resource])),
    fixed: fixedOf(resources),
    paths: ids.paths,
    foreign: gathering.foreign,
    objects: gathering.objects,
    issues: gathering.issues,
  };
}

/** A process that restarts on what restarts on it would have no digest. */
function checkRestarts(
  resources: readonly CompiledResource[],
  version: ModuleVersion,
  gathering: Gathering,
): void {
  const { cycle } = orderBy(
    resources,
    (resource) => resource.id,
    (resource) => resource.restartOn,
  );
  if (!cycle) return;
  const path = [
    "resources",
    version.manifest.resources.findIndex((r) => "restartOn" in r && r.restartOn.length > 0),
  ];
  gathering.issue(
    path,
    `module ${version.name}: processes restart on each other: ${cycle.join(" -> ")}; take one "restartOn" away`,
  );
}

function idsOf(version: ModuleVersion, gathering: Gathering): Ids {
  const { manifest, name } = version;
  const all = new Set<string>();
  const paths = new Map<string, string>();
  const state = manifest.state ? `/var/lib/${name}` : null;
  if (state !== null) {
    all.add("state");
    paths.set("state", state);
  }
  manifest.resources.forEach((resource, i) => {
    for (const { id, path } of kindOf(resource.type).ids(resource)) {
      if (all.has(id)) {
        gathering.issue(
          ["resources", i],
          `module ${name} has two resources with the id ${id}; give one another "id"`,
        );
      }
      all.add(id);
      if (path !== undefined) paths.set(id, path);
    }
  });
  return { all, paths, state };
}

function checkPorts(version: ModuleVersion, fixed: Array<[string, number]>, gathering: Gathering): void {
  const { manifest, name } = version;
  const ports = new Map<number, string>();
  for (const [port, number] of fixed) {
    const other = ports.get(number);
    if (other)
      gathering.issue(["ports", port], `ports ${other} and ${port} of module ${name} are both ${number}`);
    ports.set(number, port);
  }
  for (const [seat, { port }] of Object.entries(manifest.seats)) {
    if (Object.hasOwn(manifest.ports, port)) continue;
    gathering.issue(
      ["seats", seat, "port"],
      `seat ${seat} of module ${name}: unknown port "${port}"; ${knownNames(port, Object.keys(manifest.ports))}`,
    );
  }
}

function compileResources(
  version: ModuleVersion,
  policies: Policies,
  known: { ids: Ids; settings: ReadonlyMap<string, SettingSpec> },
  gathering: Gathering,
): CompiledResource[] {
  const { manifest, name } = version;
  const names: Names = {
    module: name,
    settings: new Set(known.settings.keys()),
    ports: new Set(Object.keys(manifest.ports)),
    paths: known.ids.paths,
    state: known.ids.state,
    slot: (slot) => gathering.slot(slot),
  };
  const drafts: Drafted[] = [];
  if (manifest.state && known.ids.state) {
    const state = directoryDraft("state", { path: known.ids.state, ...manifest.state }, [], RANK.state);
    drafts.push({ ...state, type: "directory", index: -1, ports: [] });
  }
  manifest.resources.forEach((resource, index) => {
    const ports = new Set<string>();
    const scope = scopeOf({ version, policies, names, ids: known.ids, index, ports }, gathering);
    for (const draft of kindOf(resource.type).compile(resource, scope)) {
      drafts.push({ ...draft, type: resource.type, index, ports: [...ports] });
    }
  });
  return inOrder(drafts, version, known.ids, gathering).map((draft) =>
    compileResource(draft, name, gathering),
  );
}

function inOrder(drafts: Drafted[], version: ModuleVersion, ids: Ids, gathering: Gathering): Drafted[] {
  for (const draft of drafts) {
    for (const required of draft.requires) {
      if (ids.all.has(required) || draft.index < 0) continue;
      const where = ["resources", draft.index, "requires"];
      const message = `unknown id "${required}"; ${knownNames(required, ids.all)}`;
      gathering.issue(where, `module ${version.name}, resource ${draft.id}, requires: ${message}`);
    }
  }
  const pathOf = (draft: Drafted) => (draft.type === "directory" ? (draft.fields.path as string) : "");
  const ranked = [...drafts].sort((a, b) => a.rank - b.rank || compareText(pathOf(a), pathOf(b)));
  const { order, cycle } = orderBy(
    ranked,
    (draft) => draft.id,
    (draft) => draft.requires,
  );
  if (cycle) {
    const index = drafts.find((draft) => draft.id === cycle[0])?.index ?? 0;
    gathering.issue(
      ["resources", index, "requires"],
      `module ${version.name}: resources require each other: ${cycle.join(" -> ")}; take one "requires" away`,
    );
  }
  return order;
}

type LooseKind = Kind<string, { type: string }>;
const BY_TYPE: ReadonlyMap<string, LooseKind> = new Map(
  KINDS.map((kind) => [kind.type, kind as unknown as LooseKind]),
);

function kindOf(type: string): LooseKind {
  return BY_TYPE.get(type) as LooseKind;
}
