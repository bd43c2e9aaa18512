import type { ModuleVersion } from "../catalogue/catalogue.ts";
import type { CompileScope, Field, Policies } from "../resources/kind.ts";
import type { StoredObject } from "./chunks.ts";
import { type Issue, moduleFile } from "./issues.ts";
import { knownNames } from "./nearest.ts";
import { hasPlaceholder, type Names, parseText, type Slot } from "./placeholders.ts";

/** What is gathered while one module is compiled. */
export class Gathering {
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

export interface Ids {
  all: ReadonlySet<string>;
  paths: ReadonlyMap<string, string>;
  state: string | null;
}

export interface ScopeFacts {
  version: ModuleVersion;
  policies: Policies;
  names: Names;
  ids: Ids;
  index: number;
  ports: Set<string>;
}

export function scopeOf(facts: ScopeFacts, gathering: Gathering): CompileScope {
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
