import type { Catalogue, ModuleVersion } from "../catalogue/catalogue.ts";
import type { GroupFile } from "../catalogue/schema/group.ts";
import type { SettingOverrides, SettingValue } from "../catalogue/schema/mesh.ts";
import type { NodeFile } from "../catalogue/schema/node.ts";
import { compareText, groupFile, type Issue, moduleFile, nodeFile } from "./issues.ts";
import type { CompiledModule } from "./module.ts";
import { knownNames } from "./nearest.ts";
import { wrongValue } from "./settings.ts";
import type { MeshView, NodeView, PlacedModule } from "./view.ts";

/** One file that overrides settings, in order of precedence. */
interface Layer {
  kind: "mesh" | "group" | "node";
  name: string;
  file: string;
  settings: SettingOverrides;
}

type Group = { name: string; file: GroupFile };

interface NodeMemo {
  file: NodeFile;
  view: NodeView;
  issues: Issue[];
}

interface Memo {
  catalogue: Catalogue;
  nodes: Map<string, NodeMemo>;
}

/** Placement and settings of a catalogue, worked out again only for nodes that a change can concern. */
export class Resolver {
  #memo: Memo | null = null;
  #placed = new WeakMap<ModuleVersion, Map<string, { placed: PlacedModule; issues: Issue[] }>>();
  readonly #compile: (version: ModuleVersion) => CompiledModule;

  constructor(compile: (version: ModuleVersion) => CompiledModule) {
    this.#compile = compile;
  }

  /** Forgets what depends on compiled modules (the mesh's policies changed). */
  forget(): void {
    this.#memo = null;
    this.#placed = new WeakMap();
  }

  *run(catalogue: Catalogue): Generator<void, { view: MeshView; issues: Issue[] }> {
    const before = this.#memo?.catalogue;
    const sameLayers =
      before !== undefined && before.mesh === catalogue.mesh && sameMap(before.groups, catalogue.groups);
    if (!sameLayers) this.#placed = new WeakMap();
    const changed = before && sameLayers ? changedModules(before, catalogue) : null;
    const groups = [...catalogue.groups]
      .map(([name, file]) => ({ name, file }))
      .sort((a, b) => compareText(a.name, b.name));
    const nodes = new Map<string, NodeMemo>();
    const issues: Issue[] = overrideIssues(catalogue, groups);
    for (const name of [...catalogue.nodes.keys()].sort(compareText)) {
      const file = catalogue.nodes.get(name) as NodeFile;
      const old = this.#memo?.nodes.get(name);
      const fresh = old && changed && old.file === file && !concerns(changed, old);
      const memo = fresh ? old : this.#node(name, file, groups, catalogue, old);
      nodes.set(name, memo);
      issues.push(...memo.issues);
      yield;
    }
    this.#memo = { catalogue, nodes };
    const views = new Map([...nodes].map(([name, memo]) => [name, memo.view]));
    const view = { mesh: catalogue.mesh, mixed: false, locate: catalogue.locate, nodes: views };
    return { view, issues };
  }

  #node(
    name: string,
    file: NodeFile,
    groups: Group[],
    catalogue: Catalogue,
    old: NodeMemo | undefined,
  ): NodeMemo {
    const issues: Issue[] = [];
    const modules = new Map<string, PlacedModule>();
    if (!file.retire) {
      const matching = groups.filter((group) => matches(group.file, file.labels));
      const layers: Layer[] = [
        { kind: "mesh", name: "mesh", file: "mesh.json", settings: catalogue.mesh.settings },
        ...matching.map(
          ({ name, file }): Layer => ({
            kind: "group",
            name,
            file: groupFile(name),
            settings: file.settings,
          }),
        ),
        { kind: "node", name, file: nodeFile(name), settings: file.settings },
      ];
      const wanted = new Set([...file.modules, ...matching.flatMap((group) => group.file.modules)]);
      for (const module of [...wanted].sort(compareText)) {
        const version = catalogue.modules.get(module);
        if (version) modules.set(module, this.#place(name, version, layers, issues));
        else issues.push(unknownModule(name, module, file, matching, catalogue));
      }
    }
    const { address, labels, mode, retire } = file;
    const view: NodeView = { name, address, labels, mode, retire, modules, kept: [] };
    return { file, issues, view: old && sameView(old.view, view) ? old.view : view };
  }

  /** A module with its settings; nodes with the same overrides share one object. */
  #place(node: string, version: ModuleVersion, layers: Layer[], issues: Issue[]): PlacedModule {
    const overriding = layers.filter((layer) => Object.hasOwn(layer.settings, version.name));
    // Only one layer is the node's own; without it, the groups' names say which overrides hold.
    const own = overriding.some((layer) => layer.kind === "node");
    const key = own ? `node ${node}` : overriding.map((layer) => `${layer.kind} ${layer.name}`).join("\n");
    const memo = this.#placed.get(version) ?? new Map<string, { placed: PlacedModule; issues: Issue[] }>();
    if (memo.size === 0) this.#placed.set(version, memo);
    let result = own ? undefined : memo.get(key);
    if (!result) {
      const found: Issue[] = [];
      const settings = settingsOf(node, this.#compile(version), overriding, found);
      result = { placed: { version, settings }, issues: found };
      if (!own) memo.set(key, result);
    }
    issues.push(...result.issues);
    return result.placed;
  }
}

function matches(group: GroupFile, labels: Readonly<Record<string, string>>): boolean {
  const all = (match: Readonly<Record<string, string[]>>) =>
    Object.entries(match).every(
      ([key, values]) => Object.hasOwn(labels, key) && values.includes(labels[key] as string),
    );
  return all(group.match) && (Object.keys(group.except).length === 0 || !all(group.except));
}

/** Defaults, then each layer over them. Two groups with different values for one setting are a problem. */
function settingsOf(
  node: string,
  compiled: CompiledModule,
  layers: readonly Layer[],
  issues: Issue[],
): Readonly<Record<string, SettingValue>> {
  const module = compiled.name;
  const values = new Map<string, SettingValue>();
  for (const [key, spec] of compiled.settings)
    if (spec.fallback !== undefined) values.set(key, spec.fallback);
  const byGroup = new Map<string, { group: string; value: SettingValue }>();
  for (const layer of layers) {
    for (const [key, value] of Object.entries(layer.settings[module] ?? {})) {
      const spec = compiled.settings.get(key);
      const path = ["settings", module, key];
      const wrong = spec
        ? wrongValue(spec, value)
        : `unknown setting; ${knownNames(key, compiled.settings.keys())}`;
      if (wrong) {
        issues.push({ file: layer.file, path, message: `setting ${key} of module ${module}: ${wrong}` });
        continue;
      }
      const other = byGroup.get(key);
      if (layer.kind === "group" && other && other.value !== value) {
        const both = `groups ${other.group} (${JSON.stringify(other.value)}) and ${layer.name} (${JSON.stringify(value)})`;
        const message = `setting ${key} of module ${module}: ${both} give node ${node} different values; make them equal or let only one group match it`;
        issues.push({ file: layer.file, path, message, certain: true });
      }
      if (layer.kind === "group") byGroup.set(key, { group: layer.name, value });
      values.set(key, value);
    }
  }
  for (const key of compiled.settings.keys()) {
    if (values.has(key)) continue;
    const message = `setting ${key} of module ${module} is required and has no value on node ${node}; give it in mesh.json, a group or ${nodeFile(node)}`;
    issues.push({ file: moduleFile(module), path: ["settings", key], message });
  }
  return Object.fromEntries(values);
}

/** Overrides for modules that do not exist, wherever they are written. */
function overrideIssues(catalogue: Catalogue, groups: Group[]): Issue[] {
  const issues: Issue[] = [];
  const look = (file: string, settings: SettingOverrides) => {
    for (const module of Object.keys(settings)) {
      if (catalogue.modules.has(module)) continue;
      const message = `settings for unknown module "${module}"; ${knownNames(module, catalogue.modules.keys())}`;
      issues.push({ file, path: ["settings", module], message });
    }
  };
  look("mesh.json", catalogue.mesh.settings);
  for (const { name, file } of groups) look(groupFile(name), file.settings);
  for (const [name, file] of catalogue.nodes) look(nodeFile(name), file.settings);
  return issues;
}

function unknownModule(
  node: string,
  module: string,
  file: NodeFile,
  groups: Group[],
  catalogue: Catalogue,
): Issue {
  const message = `unknown module "${module}"; ${knownNames(module, catalogue.modules.keys())}`;
  const own = file.modules.indexOf(module);
  if (own >= 0) return { file: nodeFile(node), path: ["modules", own], message };
  const group = groups.find((g) => g.file.modules.includes(module)) as Group;
  return { file: groupFile(group.name), path: ["modules", group.file.modules.indexOf(module)], message };
}

/** Names of modules that are new, gone or another version. */
function changedModules(before: Catalogue, after: Catalogue): Set<string> {
  const changed = new Set<string>();
  for (const [name, version] of after.modules) if (before.modules.get(name) !== version) changed.add(name);
  for (const name of before.modules.keys()) if (!after.modules.has(name)) changed.add(name);
  return changed;
}

function concerns(changed: ReadonlySet<string>, memo: NodeMemo): boolean {
  if (changed.size > 0 && memo.issues.length > 0) return true;
  const { modules } = memo.view;
  if (changed.size < modules.size) {
    for (const name of changed) if (modules.has(name)) return true;
    return false;
  }
  for (const name of modules.keys()) if (changed.has(name)) return true;
  return false;
}

function sameMap<V>(a: ReadonlyMap<string, V>, b: ReadonlyMap<string, V>): boolean {
  if (a === b) return true;
  if (a.size !== b.size) return false;
  for (const [key, value] of a) if (b.get(key) !== value) return false;
  return true;
}

function sameView(a: NodeView, b: NodeView): boolean {
  if (a.address !== b.address || a.mode !== b.mode || a.retire !== b.retire) return false;
  if (a.modules.size !== b.modules.size || !sameRecord(a.labels, b.labels)) return false;
  for (const [name, placed] of a.modules) {
    const other = b.modules.get(name);
    if (!other || other.version !== placed.version) return false;
    if (other.settings !== placed.settings && !sameRecord(other.settings, placed.settings)) return false;
  }
  return true;
}

/** Whether two records hold the same values, whatever the order of their keys. */
export function sameRecord<V>(a: Readonly<Record<string, V>>, b: Readonly<Record<string, V>>): boolean {
  const keys = Object.keys(a);
  if (keys.length !== Object.keys(b).length) return false;
  return keys.every((key) => Object.hasOwn(b, key) && a[key] === b[key]);
}
