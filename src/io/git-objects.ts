import { createHash } from "node:crypto";
import { meshError } from "../errors.ts";

export type EntryKind = "file" | "folder" | "symlink" | "submodule" | "special";

/** One line of a Git tree. `name` is decoded as UTF-8 (bytes that are not become U+FFFD). `special` occurs in plain folders only. */
export interface TreeEntry {
  name: string;
  kind: EntryKind;
  oid: string;
  executable: boolean;
}

/** `time` is the committer's, in milliseconds. `subject` is the first line of `message`. */
export interface Commit {
  oid: string;
  tree: string;
  parents: string[];
  message: string;
  subject: string;
  time: number;
}

export type ObjectType = "blob" | "tree" | "commit" | "tag";

/**
 * Reading a Git repository, and nothing else. Every object is named by its full id (40 hex digits).
 * A missing object or ref is an error, never an empty answer.
 */
export interface GitReader {
  readonly kind: "git" | "isomorphic" | "folder";
  /** The commit that a revision names: an id, `HEAD`, a branch, a tag, a full ref, each with `~N` and `^N` after it. Throws RefMissing. */
  resolve(revision: string): Promise<string>;
  readCommit(oid: string): Promise<Commit>;
  readTree(oid: string): Promise<TreeEntry[]>;
  readBlob(oid: string): Promise<Buffer>;
  /** Whether `ancestor` is `commit` or reached from it. False when `ancestor` is no longer in the repository. */
  isAncestor(ancestor: string, commit: string): Promise<boolean>;
  /** Forgets every cache and process, for a repository that was replaced on disk. */
  reset(): void;
  close(): Promise<void>;
}

export class RefMissing extends meshError(
  "ref-missing",
  "wait",
  (f: { repository: string; ref: string }) =>
    `${f.repository}: there is no ${f.ref}; push it, or name another ref`,
) {}

export class ObjectMissing extends meshError(
  "git-object-missing",
  "wait",
  (f: { repository: string; oid: string; wanted: string }) =>
    `${f.repository}: ${f.wanted} ${f.oid} is missing; repair the repository (git fsck) or push it again`,
) {}

export class GitUnreadable extends meshError(
  "git-unreadable",
  "retry",
  (f: { repository: string; why: string }) => `${f.repository}: cannot be read as a Git repository: ${f.why}`,
) {}

const KINDS: Record<string, EntryKind> = {
  "40000": "folder",
  "040000": "folder",
  "120000": "symlink",
  "160000": "submodule",
};

/** Parses the raw bytes of a tree object. Throws RangeError when they are not one. */
export function parseTree(bytes: Buffer): TreeEntry[] {
  const entries: TreeEntry[] = [];
  let at = 0;
  while (at < bytes.length) {
    const space = bytes.indexOf(0x20, at);
    const zero = space < 0 ? -1 : bytes.indexOf(0, space);
    if (zero < 0 || zero + 21 > bytes.length) throw new RangeError("torn tree object");
    const mode = bytes.toString("latin1", at, space);
    entries.push({
      name: bytes.toString("utf8", space + 1, zero),
      kind: KINDS[mode] ?? "file",
      oid: bytes.toString("hex", zero + 1, zero + 21),
      executable: mode === "100755",
    });
    at = zero + 21;
  }
  return entries;
}

/** Parses the raw bytes of a commit object. Throws RangeError when they are not one. */
export function parseCommit(oid: string, bytes: Buffer): Commit {
  const text = bytes.toString("utf8");
  const end = text.indexOf("\n\n");
  const head = end < 0 ? text : text.slice(0, end);
  const message = end < 0 ? "" : text.slice(end + 2);
  const tree = /^tree ([0-9a-f]{40})$/m.exec(head)?.[1];
  if (!tree) throw new RangeError("torn commit object");
  const committed = /^committer .*> (\d+) [+-]\d{4}$/m.exec(head)?.[1];
  return {
    oid,
    tree,
    parents: [...head.matchAll(/^parent ([0-9a-f]{40})$/gm)].map((m) => m[1] as string),
    message,
    subject: message.trimStart().split("\n", 1)[0]?.trimEnd() ?? "",
    time: Number(committed ?? 0) * 1000,
  };
}

/** The id that Git gives these bytes: sha1 over `<type> <size>\0<bytes>`. */
export function objectId(type: ObjectType, bytes: Buffer): string {
  return createHash("sha1").update(`${type} ${bytes.length}\0`).update(bytes).digest("hex");
}

const MODES: Record<EntryKind, string> = {
  file: "100644",
  folder: "40000",
  symlink: "120000",
  submodule: "160000",
  special: "100644",
};

/** The raw bytes of a tree object with these entries, ordered as Git orders them (a folder sorts as `name/`). */
export function formatTree(entries: readonly TreeEntry[]): Buffer {
  // As latin1, the order of the text is that of the bytes.
  const keyed = entries.map((entry) => ({
    entry,
    key: Buffer.from(entry.kind === "folder" ? `${entry.name}/` : entry.name).toString("latin1"),
  }));
  keyed.sort((a, b) => (a.key < b.key ? -1 : a.key > b.key ? 1 : 0));
  return Buffer.concat(
    keyed.flatMap(({ entry }) => [
      Buffer.from(`${entry.executable ? "100755" : MODES[entry.kind]} ${entry.name}\0`),
      Buffer.from(entry.oid, "hex"),
    ]),
  );
}

/** Splits `main~2^` into `main` and its steps; null when it is no revision that could be meant. */
export function parseRevision(revision: string): { base: string; steps: Array<["~" | "^", number]> } | null {
  const match = /^([^\s~^:?*[\\\u0000-\u001f\u007f]+)((?:[~^]\d{0,6})*)$/.exec(revision);
  if (!match?.[1] || match[1].includes("..") || match[1].startsWith("-")) return null;
  const steps = [...(match[2] ?? "").matchAll(/([~^])(\d*)/g)].map(
    (m) => [m[1], m[2] ? Number(m[2]) : 1] as ["~" | "^", number],
  );
  return { base: match[1], steps };
}

/** The full names that a short ref may mean, in Git's order. */
export function refCandidates(base: string): string[] {
  if (base === "HEAD" || base.startsWith("refs/")) return [base];
  return [`refs/heads/${base}`, `refs/tags/${base}`, `refs/remotes/${base}`, `refs/remotes/origin/${base}`];
}
