import type { Breather } from "./breather.ts";
import type { Problem } from "./catalogue.ts";
import { type Entry, type Objects, unsupported } from "./objects.ts";
import type { FileReader, ReadFile } from "./validate.ts";

/** One file of nodes/ or groups/, read once per object id. */
export interface FileEntry<T> {
  name: string;
  file: string;
  oid: string;
  read: ReadFile<T>;
  problems: Problem[];
}

/** nodes/ or groups/ at one tree id. `entries` hold bad files too, `values` only good ones; both by name, in its order. */
export interface FilesStage<T> {
  tree: string;
  entries: ReadonlyMap<string, FileEntry<T>>;
  values: ReadonlyMap<string, T>;
  problems: Problem[];
}

export interface FilesKind<T> {
  folder: string;
  what: string;
  valid: (name: string) => boolean;
  rule: string;
  read: FileReader<T>;
}

/** Reads nodes/ or groups/. What has the same object id in one of `earlier` is taken from there, down to the same objects. */
export async function readFiles<T>(
  objects: Objects,
  kind: FilesKind<T>,
  tree: string | null,
  earlier: ReadonlyArray<FilesStage<T>>,
  breathe: Breather,
): Promise<FilesStage<T>> {
  const same = earlier.find((stage) => stage.tree === (tree ?? ""));
  if (same) return same;
  const problems: Problem[] = [];
  const listed = tree === null ? [] : await objects.readTree(tree);
  const wanted: Array<{ entry: Entry; name: string; file: string }> = [];
  for (const entry of listed) {
    const file = `${kind.folder}/${entry.name}`;
    const why = unsupported(entry) ?? misplaced(entry, kind);
    if (why) problems.push({ file, line: 0, column: 0, path: "", message: why });
    else if (!isIgnored(entry.name)) wanted.push({ entry, name: entry.name.slice(0, -".json".length), file });
  }
  wanted.sort((a, b) => (a.name < b.name ? -1 : 1));
  const ready = await Promise.all(
    wanted.map(async ({ entry, name, file }) => {
      for (const stage of earlier) {
        const before = stage.entries.get(name);
        if (before?.oid === entry.oid) return before;
      }
      return { name, file, oid: entry.oid, bytes: await objects.readBlob(entry.oid) };
    }),
  );
  const entries = new Map<string, FileEntry<T>>();
  const values = new Map<string, T>();
  for (const one of ready) {
    const entry = "read" in one ? one : await readEntry(one, kind, breathe);
    entries.set(entry.name, entry);
    if (entry.read.value !== null) values.set(entry.name, entry.read.value);
    if (entry.problems.length > 0) problems.push(...entry.problems);
  }
  return { tree: tree ?? "", entries, values, problems };
}

async function readEntry<T>(
  one: { name: string; file: string; oid: string; bytes: Buffer },
  kind: FilesKind<T>,
  breathe: Breather,
): Promise<FileEntry<T>> {
  await breathe();
  const read = kind.read(one.bytes, one.name);
  return {
    name: one.name,
    file: one.file,
    oid: one.oid,
    read,
    problems: read.problems.map((p) => ({ file: one.file, ...p })),
  };
}

/** Files that people keep beside the declarations, in nodes/, groups/ and modules/. */
export function isIgnored(name: string): boolean {
  return name.startsWith(".") || name === "README.md";
}

function misplaced(entry: Entry, kind: FilesKind<unknown>): string | null {
  if (isIgnored(entry.name)) return null;
  const { what, folder } = kind;
  if (entry.kind === "folder") return `is a folder; ${folder}/ holds one file <${what}>.json per ${what}`;
  if (!entry.name.endsWith(".json"))
    return `is not named as a ${what}; ${folder}/ holds one file <${what}>.json per ${what}`;
  const name = entry.name.slice(0, -".json".length);
  return kind.valid(name) ? null : `${JSON.stringify(name)} is no name of a ${what}; it ${kind.rule}`;
}
