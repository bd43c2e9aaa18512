import {
  closeSync,
  constants,
  type Dirent,
  fstatSync,
  lstatSync,
  openSync,
  readdirSync,
  readFileSync,
} from "node:fs";
import { join } from "node:path";
import ignore, { type Ignore } from "ignore";
import { meshError, messageOf } from "../errors.ts";
import { type EntryKind, formatTree, ObjectMissing, objectId, type TreeEntry } from "./git-objects.ts";

export class FolderUnreadable extends meshError(
  "folder-unreadable",
  "stalled",
  (f: { path: string; why: string }) => `${f.path}: cannot be read: ${f.why}`,
) {}

export class FolderChanged extends meshError(
  "folder-changed",
  "retry",
  (f: { path: string }) => `${f.path}: changed while it was read; try again`,
) {}

/** Files up to this size are read once for both their id and their content. Bytes. */
const SMALL = 64 * 1024;

/** The rules of one .gitignore, and the folder it stands in (relative, "" or ending in "/"). */
type Rules = ReadonlyArray<{ at: string; rules: Ignore }>;

/**
 * A plain folder seen as Git objects, read synchronously (a check of 1,000 modules is three times as fast so): what `git add` would store, with the same ids. Empty folders and what .gitignore
 * names are left out; links are never followed; a folder with a `.git` of its own is a submodule.
 */
export class FolderObjects {
  readonly #top: string;
  readonly #trees = new Map<string, TreeEntry[]>();
  readonly #files = new Map<string, string>();
  /** Bodies of small files as scanned, until `settle`. */
  readonly #fresh = new Map<string, Buffer>();

  constructor(top: string) {
    this.#top = top;
  }

  /** Walks the folder and returns the id of its tree, with only those entries at the top that `keep` takes. */
  scan(keep: (name: string) => boolean): string {
    this.#trees.clear();
    this.#files.clear();
    this.#fresh.clear();
    return this.#folder("", [], keep) ?? this.#store([]);
  }

  /** Lets go of what was kept for the read that follows a scan. */
  settle(): void {
    this.#fresh.clear();
  }

  async readTree(oid: string): Promise<TreeEntry[]> {
    const entries = this.#trees.get(oid);
    if (!entries) throw new ObjectMissing({ repository: this.#top, oid, wanted: "tree" });
    return entries;
  }

  async readBlob(oid: string): Promise<Buffer> {
    const path = this.#files.get(oid);
    if (path === undefined) throw new ObjectMissing({ repository: this.#top, oid, wanted: "blob" });
    const fresh = this.#fresh.get(oid);
    if (fresh) return fresh;
    const { bytes } = this.#read(path);
    if (objectId("blob", bytes) !== oid) throw new FolderChanged({ path: join(this.#top, path) });
    return bytes;
  }

  #store(entries: TreeEntry[]): string {
    const oid = objectId("tree", formatTree(entries));
    this.#trees.set(oid, entries);
    return oid;
  }

  #folder(path: string, above: Rules, keep: (name: string) => boolean): string | null {
    const found = this.#list(path);
    const rules = this.#rules(path, above, found);
    const entries: TreeEntry[] = [];
    for (const dirent of found) {
      const { name } = dirent;
      const inner = path === "" ? name : `${path}/${name}`;
      if (name === ".git" || !keep(name) || ignored(rules, inner, dirent.isDirectory())) continue;
      const entry = this.#entry(dirent, inner, rules);
      if (entry) entries.push(entry);
    }
    return entries.length > 0 ? this.#store(entries) : null;
  }

  #entry(dirent: Dirent, path: string, rules: Rules): TreeEntry | null {
    const entry = (kind: EntryKind, oid: string, executable = false) => ({
      name: dirent.name,
      kind,
      oid,
      executable,
    });
    if (dirent.isSymbolicLink()) return entry("symlink", objectId("blob", Buffer.alloc(0)));
    if (dirent.isDirectory()) {
      if (this.#exists(`${path}/.git`)) return entry("submodule", "0".repeat(40));
      const oid = this.#folder(path, rules, () => true);
      return oid === null ? null : entry("folder", oid);
    }
    if (!dirent.isFile()) return entry("special", objectId("blob", Buffer.alloc(0)));
    const { bytes, executable } = this.#read(path);
    const oid = objectId("blob", bytes);
    this.#files.set(oid, path);
    if (bytes.length <= SMALL) this.#fresh.set(oid, bytes);
    return entry("file", oid, executable);
  }

  #list(path: string): Dirent[] {
    try {
      return readdirSync(join(this.#top, path), { withFileTypes: true });
    } catch (cause) {
      throw new FolderUnreadable({ path: join(this.#top, path), why: reason(cause) }, { cause });
    }
  }

  #read(path: string): { bytes: Buffer; executable: boolean } {
    let file: number | null = null;
    try {
      file = openSync(join(this.#top, path), constants.O_RDONLY | constants.O_NOFOLLOW);
      return { executable: (fstatSync(file).mode & 0o100) !== 0, bytes: readFileSync(file) };
    } catch (cause) {
      throw new FolderUnreadable({ path: join(this.#top, path), why: reason(cause) }, { cause });
    } finally {
      if (file !== null) closeSync(file);
    }
  }

  #rules(path: string, above: Rules, found: Dirent[]): Rules {
    if (!found.some((d) => d.name === ".gitignore" && d.isFile())) return above;
    const at = path === "" ? "" : `${path}/`;
    const text = this.#read(`${at}.gitignore`).bytes.toString("utf8");
    return [...above, { at, rules: ignore().add(text) }];
  }

  #exists(path: string): boolean {
    return lstatSync(join(this.#top, path), { throwIfNoEntry: false }) !== undefined;
  }
}

function ignored(rules: Rules, path: string, folder: boolean): boolean {
  let verdict = false;
  for (const { at, rules: one } of rules) {
    const result = one.test(path.slice(at.length) + (folder ? "/" : ""));
    if (result.ignored) verdict = true;
    else if (result.unignored) verdict = false;
  }
  return verdict;
}

function reason(cause: unknown): string {
  return (cause as NodeJS.ErrnoException).code ?? messageOf(cause);
}
