import type { ModuleVersion } from "../catalogue/catalogue.ts";
import type { Claim } from "../resources/base.ts";
import { directoryDraft } from "../resources/directory/compile.ts";
import { DigestOf, type Draft, StoredBody } from "../resources/draft.ts";
import {
  type CompileScope,
  type DraftResource,
  type Field,
  type Kind,
  type Policies,
  RANK,
} from "../resources/kind.ts";
import { KINDS } from "../resources/kinds.ts";
import {
  type Chunk,
  type Filling,
  fillChunks,
  joinMembers,
  type StoredObject,
  sha256,
  toChunks,
} from "./chunks.ts";
import { compareText, type Issue, moduleFile } from "./issues.ts";
import { knownNames } from "./nearest.ts";
import { orderBy } from "./order.ts";
import { hasPlaceholder, type Names, parseText, type Slot } from "./placeholders.ts";
import { type SettingSpec, settingSpecs, wrongValue } from "./settings.ts";

/** One resource of a module, ready to be filled. `ports` are the names of the module's ports that its texts use. */
export interface CompiledResource {
  /** Full id. */
  id: string;
  type: string;
  chunks: readonly Chunk[];
  identity: readonly Chunk[];
  restartOn: readonly string[];
  claims: readonly Claim[];
  ports: readonly string[];
  service: boolean;
  /** Name of its module. */
  module: string;
  /** Its claims as keys, and for each claimed path the keys of the folders above it. */
  keys: readonly string[];
  above: readonly string[];
}

/** What a resource is on every node alike: no value of a node, a setting or another module is in it. */
export interface FixedResource {
  text: string;
  digest: string;
}

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
  /** Bodies in the object store that are the same on every node. */
  objects: ReadonlyMap<string, StoredObject>;
  issues: readonly Issue[];
}

/** What is gathered while one module is compiled. */
class Gathering {
  readonly issues: Issue[] = [];
  readonly slots: Slot[] = [];
  readonly seatUses: Array<{ seat: string; path: Field; label: string }> = [];
  readonly foreign: Array<{ id: string; path: Field }> = [];
  readonly objects = new Map<string, StoredObject>();
  readonly #slotIndex = new Map<string, number>();
  readonly version: ModuleVersion;

  constructor(version: ModuleVersion) {
    this.version = version;
  }
  issue(path: Field, message: string): void {
    this.issues.push({ file: moduleFile(this.version.name), path, message });
  }
  slot(slot: Slot): number {
    const key = `${slot.kind}:${slot.name}`;
    const known = this.#slotIndex.get(key);
    if (known !== undefined) return known;
    this.#slotIndex.set(key, this.slots.length);
    return this.slots.push(slot) - 1;
  }
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

interface Ids {
  all: ReadonlySet<string>;
  paths: ReadonlyMap<string, string>;
  state: string | null;
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

type Drafted = DraftResource & { type: string; index: number; ports: readonly string[] };

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
  return inOrder(drafts, version, known.ids, gathering).map((draft) => compiled(draft, name, gathering));
}

interface ScopeFacts {
  version: ModuleVersion;
  policies: Policies;
  names: Names;
  ids: Ids;
  index: number;
  ports: Set<string>;
}

function scopeOf(facts: ScopeFacts, gathering: Gathering): CompileScope {
  const { version, names, ids, index } = facts;
  const resource = version.manifest.resources[index] as { type: string; id?: string; name?: string };
  const label = `module ${version.name}, resource ${resource.id ?? resource.name}`;
  const at = (where: Field): Field => ["resources", index, ...where];
  const problem = (where: Field, message: string) =>
    gathering.issue(at(where), `${label}${where.length > 0 ? `, ${where.join(".")}` : ""}: ${message}`);
  const named: Names = {
    ...names,
    slot: (slot) => {
      if (slot.kind === "port") facts.ports.add(slot.name);
      return gathering.slot(slot);
    },
  };
  return {
    module: version.name,
    policies: facts.policies,
    text: (value, where) => {
      const template = parseText(
        value,
        {
          ...named,
          slot: (slot) => {
            if (slot.kind === "seat") {
              gathering.seatUses.push({
                seat: slot.name,
                path: at(where),
                label: `${label}, ${where.join(".")}`,
              });
            }
            if (slot.kind === "path") gathering.foreign.push({ id: slot.name, path: at(where) });
            return named.slot(slot);
          },
        },
        (message) => problem(where, message),
      );
      return template;
    },
    plain: (value, where) => {
      const found = hasPlaceholder(value);
      if (found) problem(where, `found ${found}; no placeholder is filled here, write the value itself`);
      return value;
    },
    source: (path, where) => {
      const source = version.sources.get(path);
      if (!source) problem(where, `the module has no file "${path}"`);
      return source ?? null;
    },
    pathOf: (id, where) => {
      const path = ids.paths.get(id);
      if (path === undefined) problem(where, `unknown file "${id}"; ${knownNames(id, ids.paths.keys())}`);
      return path ?? null;
    },
    reference: (ref, where) =>
      reference(
        ref,
        version.name,
        ids,
        (message) => problem(where, message),
        (id) => gathering.foreign.push({ id, path: at(where) }),
      ),
    problem,
  };
}

/** The full id of `config`, `web.config` or (not there yet) `secret:NAME`. */
function reference(
  ref: string,
  module: string,
  ids: Ids,
  problem: (message: string) => void,
  foreign: (id: string) => void,
): string | null {
  if (ref.startsWith("secret:")) {
    problem(`${ref}: secrets are not there yet`);
    return null;
  }
  const dot = ref.indexOf(".");
  const owner = dot < 0 ? module : ref.slice(0, dot);
  const id = ref.slice(dot + 1);
  if (owner !== module) {
    foreign(ref);
    return ref;
  }
  if (ids.all.has(id)) return `${module}.${id}`;
  problem(`unknown id "${ref}"; ${knownNames(id, ids.all)}`);
  return null;
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

function compiled(draft: Drafted, module: string, gathering: Gathering): CompiledResource {
  const id = `${module}.${draft.id}`;
  const own = Object.keys(draft.fields);
  const members = new Map<string, readonly Chunk[]>();
  for (const key of own) members.set(key, toChunks(draft.fields[key] as Draft));
  const requires = [...new Set(draft.requires)].map((required) => `${module}.${required}`);
  const common = { type: draft.type, id, module, requires, takes: [], digest: new DigestOf(id) };
  for (const [key, value] of Object.entries(common)) members.set(key, toChunks(value));
  const body = draft.fields.body;
  if (body instanceof StoredBody) {
    gathering.objects.set(body.sha256, { oid: body.oid, bytes: body.bytes, size: body.size });
  }
  const identity = joinMembers(members, ["type", ...(draft.identity ?? own)]);
  const chunks = joinMembers(members, [...members.keys()]);
  return {
    id,
    type: draft.type,
    chunks,
    identity,
    restartOn: draft.restartOn ?? [],
    claims: draft.claims,
    ports: draft.ports,
    service: draft.rank === RANK.service,
    module,
    keys: draft.claims.map(({ space, name }) => `${space}:${name}`),
    above: draft.claims.flatMap(({ space, name }) => (space === "path" ? foldersAbove(name) : [])),
  };
}

function foldersAbove(path: string): string[] {
  const above: string[] = [];
  for (let end = path.lastIndexOf("/"); end > 0; end = path.lastIndexOf("/", end - 1)) {
    above.push(`path:${path.slice(0, end)}`);
  }
  return above;
}

/** Fills once what needs no value. A resource that depends on a later one in the order is left to be filled each time. */
function fixedOf(resources: readonly CompiledResource[]): Map<string, FixedResource> {
  const fixed = new Map<string, FixedResource>();
  for (const resource of resources) {
    const needs = (chunk: Chunk) =>
      typeof chunk === "number" ||
      (typeof chunk === "object" &&
        !("digestOf" in chunk && (chunk.digestOf === resource.id || fixed.has(chunk.digestOf))));
    if (resource.chunks.some(needs) || resource.identity.some(needs)) continue;
    if (!resource.restartOn.every((id) => fixed.has(id))) continue;
    const known = (id: string) => fixed.get(id)?.digest ?? "";
    const digest = digestOf(resource, { ...NO_VALUES, digestOf: known });
    const text = fillChunks(resource.chunks, {
      ...NO_VALUES,
      digestOf: (id) => (id === resource.id ? digest : known(id)),
    });
    fixed.set(resource.id, { text, digest });
  }
  return fixed;
}

const NO_VALUES = { values: [], escaped: [], store: () => undefined };

/** The digest of a resource: its own fields, and the digests of what it restarts on. */
export function digestOf(resource: CompiledResource, filling: Filling): string {
  let text = fillChunks(resource.identity, filling);
  for (const target of resource.restartOn) text += `\n${filling.digestOf(target)}`;
  return sha256(text);
}

type LooseKind = Kind<string, { type: string }>;
const BY_TYPE: ReadonlyMap<string, LooseKind> = new Map(
  KINDS.map((kind) => [kind.type, kind as unknown as LooseKind]),
);

function kindOf(type: string): LooseKind {
  return BY_TYPE.get(type) as LooseKind;
}
