import { NAME } from "../resources/values.ts";
import type { Breather } from "./breather.ts";
import type { ModuleVersion, Problem, SourceFile } from "./catalogue.ts";
import { idsOf } from "./check-module.ts";
import { isIgnored } from "./folder-of-files.ts";
import { type Entry, type Objects, unsupported } from "./objects.ts";
import { entriesOf, isObject } from "./raw.ts";
import type { ModuleFile } from "./schema/module.ts";
import { type SettingType, settingType } from "./settings.ts";
import { readSources, type SourceMemo } from "./sources.ts";
import { type ReadFile, readModuleFile } from "./validate.ts";

/** What other files may refer to in a module. `key` is equal exactly when all of it is. */
export interface Face {
  key: string;
  tier: number | null;
  seats: string[];
  /** Null when the manifest is not JSON; `settings` also when one of them is of no known type. */
  ids: ReadonlySet<string> | null;
  settings: ReadonlyMap<string, SettingType> | null;
}

export interface ModuleEntry {
  name: string;
  file: string;
  tree: string;
  manifestOid: string;
  read: ReadFile<ModuleFile>;
  version: ModuleVersion | null;
  problems: Problem[];
  face: Face;
}

/** modules/ at one tree id. `faces` is the same object as long as no module changed what others may refer to. */
export interface ModulesStage {
  tree: string;
  entries: ReadonlyMap<string, ModuleEntry>;
  values: ReadonlyMap<string, ModuleVersion>;
  faces: ReadonlyMap<string, Face>;
  problems: Problem[];
}

/** Reads modules/. A module whose tree id is that of one of `earlier` is taken from there, down to the same objects. */
export async function readModules(
  objects: Objects,
  tree: string | null,
  earlier: readonly ModulesStage[],
  breathe: Breather,
): Promise<ModulesStage> {
  const same = earlier.find((stage) => stage.tree === (tree ?? ""));
  if (same) return same;
  const problems: Problem[] = [];
  const listed = tree === null ? [] : await objects.readTree(tree);
  const wanted: Entry[] = [];
  for (const entry of listed) {
    const why = unsupported(entry) ?? misplaced(entry);
    if (why) problems.push({ file: `modules/${entry.name}`, line: 0, column: 0, path: "", message: why });
    else if (!isIgnored(entry.name)) wanted.push(entry);
  }
  wanted.sort((a, b) => (a.name < b.name ? -1 : 1));
  const ready = await inPortions(wanted, 256, async (entry) => {
    const before = earlier.map((stage) => stage.entries.get(entry.name)).filter((e) => e !== undefined);
    return before.find((e) => e.tree === entry.oid) ?? (await readModule(objects, entry, before, breathe));
  });
  const entries = new Map(ready.map((e) => [e.name, e]));
  const values = new Map<string, ModuleVersion>();
  for (const entry of ready) {
    if (entry.version) values.set(entry.name, entry.version);
    if (entry.problems.length > 0) problems.push(...entry.problems);
  }
  return { tree: tree ?? "", entries, values, faces: facesOf(entries, earlier[0]), problems };
}

/** Works through a list with many reads under way, but not with all files of a large catalogue in memory at once. */
async function inPortions<A, B>(
  list: readonly A[],
  size: number,
  work: (one: A) => Promise<B>,
): Promise<B[]> {
  const done: B[] = [];
  for (let i = 0; i < list.length; i += size)
    done.push(...(await Promise.all(list.slice(i, i + size).map(work))));
  return done;
}

function facesOf(entries: ReadonlyMap<string, ModuleEntry>, before: ModulesStage | undefined) {
  const unchanged =
    before?.faces.size === entries.size &&
    [...entries.values()].every((entry) => {
      const face = before.faces.get(entry.name);
      return face === entry.face || face?.key === entry.face.key;
    });
  return unchanged ? before.faces : new Map([...entries.values()].map((e) => [e.name, e.face]));
}

async function readModule(
  objects: Objects,
  entry: Entry,
  before: ModuleEntry[],
  breathe: Breather,
): Promise<ModuleEntry> {
  const { name } = entry;
  const folder = `modules/${name}`;
  const file = `${folder}/module.json`;
  const { files, problems } = await listFiles(objects, entry.oid, folder);
  const manifest = files.get("module.json");
  if (manifest === undefined) {
    problems.push({ file: folder, line: 0, column: 0, path: "", message: noManifest(files) });
    const read = { text: "", raw: undefined, value: null, problems: [] };
    return {
      name,
      file,
      tree: entry.oid,
      manifestOid: "",
      read,
      version: null,
      problems,
      face: faceOf(read),
    };
  }
  const known = before.find((e) => e.manifestOid === manifest);
  const bytes = known ? null : await objects.readBlob(manifest);
  await breathe();
  const read = known?.read ?? readModuleFile(bytes as Buffer, name);
  problems.push(...read.problems.map((p) => ({ file, ...p })));
  const memo: SourceMemo = new Map(
    before.flatMap((e) => [...(e.version?.sources.values() ?? [])].map((s) => [s.oid, s])),
  );
  const sources = await readSources(objects, read, files, memo);
  problems.push(...sources.problems.map((p) => ({ file, ...p })));
  const version =
    read.value !== null && problems.length === 0
      ? versionOf(name, entry.oid, read.value, sources.files)
      : null;
  return {
    name,
    file,
    tree: entry.oid,
    manifestOid: manifest,
    read,
    version,
    problems,
    face: known?.face ?? faceOf(read),
  };
}

function versionOf(
  name: string,
  tree: string,
  manifest: ModuleFile,
  sources: ReadonlyMap<string, SourceFile>,
): ModuleVersion {
  return { name, tree, manifest, sources };
}

/** Every file below a module's folder, with its object id, by its path inside; and what may not be there. */
async function listFiles(objects: Objects, tree: string, folder: string) {
  const files = new Map<string, string>();
  const problems: Problem[] = [];
  const walk = async (oid: string, prefix: string): Promise<void> => {
    const folders: Entry[] = [];
    for (const entry of await objects.readTree(oid)) {
      const path = prefix + entry.name;
      const why = unsupported(entry);
      if (why) problems.push({ file: `${folder}/${path}`, line: 0, column: 0, path: "", message: why });
      else if (entry.kind === "folder") folders.push(entry);
      else files.set(path, entry.oid);
    }
    await Promise.all(folders.map((entry) => walk(entry.oid, `${prefix}${entry.name}/`)));
  };
  await walk(tree, "");
  return { files, problems };
}

function misplaced(entry: Entry): string | null {
  if (isIgnored(entry.name)) return null;
  if (entry.kind !== "folder")
    return "is a file; modules/ holds one folder per module, with a module.json in it";
  return NAME.test(entry.name)
    ? null
    : `${JSON.stringify(entry.name)} is no name of a module; it must be lower-case letters, digits and inner hyphens, at most 63 characters`;
}

function noManifest(files: ReadonlyMap<string, string>): string {
  const near = [...files.keys()].find((path) => /^(module|manifest)[^/]*$/i.test(path));
  return `has no module.json${near ? `; found ${near}, rename it` : "; add one, or remove the folder"}`;
}

function faceOf(read: ReadFile<ModuleFile>): Face {
  const raw = isObject(read.raw) ? read.raw : {};
  const tier = raw.tier === undefined ? 2 : typeof raw.tier === "number" ? raw.tier : null;
  const seats = entriesOf(raw.seats).map(([name]) => name);
  const ids = idsOf(raw);
  const settings = entriesOf(raw.settings).map(([key, declared]) => [key, settingType(declared)] as const);
  const clear = read.raw !== undefined && settings.every(([, type]) => type !== null);
  return {
    key: JSON.stringify([tier, seats.toSorted(), ids.toSorted(), settings.toSorted(), clear]),
    tier: read.raw === undefined ? null : tier,
    seats,
    ids: read.raw === undefined ? null : new Set(ids),
    settings: clear ? new Map(settings as Array<[string, SettingType]>) : null,
  };
}
