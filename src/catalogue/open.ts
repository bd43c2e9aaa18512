import { statSync } from "node:fs";
import { resolve } from "node:path";
import { meshError } from "../errors.ts";
import { type Commit, type GitReader, GitUnreadable, gitDirOf, ObjectMissing, openGit } from "../io/git.ts";
import { FolderObjects } from "../io/git-folder.ts";
import { cloneBare, fetchBare, type Remote, remoteTip } from "../io/git-remote.ts";
import type { CatalogueResult } from "./catalogue.ts";
import { TOP, TreeReader } from "./reader.ts";
import { pollRemote, RemoteClone, shownUrl } from "./remote.ts";
import { watchRef } from "./watch.ts";

export class CatalogueAddress extends meshError(
  "catalogue-address",
  "stalled",
  (f: { address: string; why: string; local?: boolean }) =>
    `catalogue ${JSON.stringify(f.address)}: ${f.why}; expected a folder${f.local ? " or" : ","} a Git repository on this machine${f.local ? "" : ", or an http(s):// URL"}`,
) {}

const REPAIR_EVERY = 60_000;

/** Where a catalogue is. A branch or full ref names what is watched. */
export type CatalogueSource =
  | { kind: "folder"; path: string }
  | { kind: "git"; path: string; ref: string }
  | { kind: "remote"; url: string; ref: string; clone: string; token: (() => Promise<string | null>) | null };

export interface OpenOptions {
  /** Which reader of Git to use; by default git itself where it is on PATH. */
  prefer?: "git" | "isomorphic";
  /** Bounds for a remote, in milliseconds. */
  idle?: number;
  within?: number;
}

export interface CatalogueReader {
  readonly source: CatalogueSource;
  /** Fetches from a remote (bounded, repairs a damaged clone); does nothing for what is on this machine. */
  sync(signal?: AbortSignal): Promise<void>;
  /** The commit of the watched ref, or of any revision (`main~2`, a tag, an id). Throws RefMissing. */
  resolveRef(revision?: string): Promise<string>;
  /** Reads a commit (null: a plain folder as it is now), at the cost of what differs from what was read before. */
  read(commit: string | null): Promise<CatalogueResult>;
  /** The bytes of a source file by its object id. */
  readBody(oid: string): Promise<Buffer>;
  /** Whether `ancestor` is `commit` or before it. False when it is no longer in the repository. */
  isAncestor(ancestor: string, commit: string): Promise<boolean>;
  /** The first line of a commit's message. */
  subject(commit: string): Promise<string>;
  /** Message, parents, time. */
  commit(commit: string): Promise<Commit>;
  /** Hints whenever the watched ref may have moved: at once on this machine, by polling a remote. Until `signal` aborts. */
  watch(options: {
    onHint: () => void | Promise<void>;
    onError?: (error: unknown) => void;
    signal: AbortSignal;
    poll?: number;
  }): Promise<void>;
  close(): Promise<void>;
}

/** What an address as people give it means: a URL, a Git repository, or else a plain folder. */
export function sourceOf(
  address: string,
  options: { ref: string; clone?: string; token?: () => Promise<string | null> },
): CatalogueSource {
  if (/^https?:\/\//.test(address)) {
    if (!options.clone)
      throw new CatalogueAddress({
        address: shownUrl(address),
        why: "a URL is not read here, clone it first",
        local: true,
      });
    return {
      kind: "remote",
      url: address,
      ref: options.ref,
      clone: options.clone,
      token: options.token ?? null,
    };
  }
  if (/^[a-z+]+:\/\//.test(address) || /^[^/]+@[^/]+:/.test(address))
    throw new CatalogueAddress({ address: shownUrl(address), why: "this kind of address is not supported" });
  const stat = statSync(address, { throwIfNoEntry: false });
  if (!stat) throw new CatalogueAddress({ address, why: "there is nothing" });
  if (!stat.isDirectory()) throw new CatalogueAddress({ address, why: "it is a file" });
  const path = resolve(address);
  const bare = gitDirOf(path) === path;
  return bare ? { kind: "git", path, ref: options.ref } : { kind: "folder", path };
}

export async function openCatalogue(
  source: CatalogueSource,
  options: OpenOptions = {},
): Promise<CatalogueReader> {
  if (source.kind === "folder") return folderReader(source);
  if (source.kind === "remote") return remoteReader(source, options);
  return gitReader(source, await openGit(source.path, prefer(options)));
}

/** A plain folder as it is now, with the ids that Git would give. */
export async function readFolder(dir: string): Promise<CatalogueResult> {
  return folderReader({ kind: "folder", path: resolve(dir) }).read(null);
}

function prefer(options: OpenOptions): { prefer?: "git" | "isomorphic" } {
  return options.prefer ? { prefer: options.prefer } : {};
}

function fullRef(ref: string): string {
  return ref === "HEAD" || ref.startsWith("refs/") ? ref : `refs/heads/${ref}`;
}

function gitReader(source: Extract<CatalogueSource, { ref: string }>, git: GitReader): CatalogueReader {
  const trees = new TreeReader(git);
  const gitDir = source.kind === "git" ? (gitDirOf(source.path) as string) : source.clone;
  return {
    source,
    sync: async () => {},
    resolveRef: (revision) => git.resolve(revision ?? fullRef(source.ref)),
    read: async (commit) => {
      const oid = commit ?? (await git.resolve(fullRef(source.ref)));
      const { tree, subject } = await git.readCommit(oid);
      return trees.read(tree, { commit: oid, subject });
    },
    readBody: (oid) => git.readBlob(oid),
    isAncestor: (ancestor, commit) => git.isAncestor(ancestor, commit),
    subject: async (commit) => (await git.readCommit(commit)).subject,
    commit: (commit) => git.readCommit(commit),
    watch: (watching) => watchRef(gitDir, fullRef(source.ref), watching),
    close: () => git.close(),
  };
}

function folderReader(source: Extract<CatalogueSource, { kind: "folder" }>): CatalogueReader {
  const top: ReadonlySet<string> = new Set(TOP);
  const objects = new FolderObjects(source.path);
  const trees = new TreeReader(objects);
  const noCommits = (revision: string) =>
    new CatalogueAddress({ address: source.path, why: `it is a plain folder without commits (${revision})` });
  return {
    source,
    sync: async () => {},
    resolveRef: async (revision) => {
      throw noCommits(revision ?? "HEAD");
    },
    read: async (commit) => {
      if (commit !== null) throw noCommits(commit);
      try {
        return await trees.read(
          objects.scan((name) => top.has(name)),
          { commit: null, subject: "" },
        );
      } finally {
        objects.settle();
      }
    },
    readBody: (oid) => objects.readBlob(oid),
    isAncestor: async (_ancestor, commit) => {
      throw noCommits(commit);
    },
    subject: async () => "",
    commit: async (commit) => {
      throw noCommits(commit);
    },
    watch: async () => {},
    close: async () => {},
  };
}

async function remoteReader(
  source: Extract<CatalogueSource, { kind: "remote" }>,
  options: OpenOptions,
): Promise<CatalogueReader> {
  const ref = fullRef(source.ref);
  const open = late(() => openGit(source.clone, prefer(options)));
  const remote = async (signal: AbortSignal | undefined): Promise<Remote> => ({
    url: shownUrl(source.url),
    ref,
    auth: await credentials(source),
    idle: options.idle ?? 30_000,
    within: options.within ?? 600_000,
    signal,
  });
  const clone = new RemoteClone(source.clone, {
    tip: async (signal) => remoteTip(await remote(signal)),
    clone: async (dir, signal) => cloneBare(dir, await remote(signal)),
    fetch: async (dir, signal) => fetchBare(dir, await remote(signal)),
    have: async () => {
      const git = await open.get().catch(() => null);
      return git ? git.resolve(ref).catch(() => null) : null;
    },
    replaced: () => open.opened()?.reset(),
  });
  const local = late(async () => gitReader(source, await open.get()));
  let repairedAt = Number.NEGATIVE_INFINITY;
  /** What is missing or damaged in the clone is fetched anew; once a minute, since what the remote has not is not repaired by it. */
  const repaired = async <T>(work: (reader: CatalogueReader) => Promise<T>): Promise<T> => {
    try {
      return await work(await local.get());
    } catch (cause) {
      const damaged = cause instanceof ObjectMissing || cause instanceof GitUnreadable;
      if (!damaged || performance.now() - repairedAt < REPAIR_EVERY) throw cause;
      await clone.repair();
      repairedAt = performance.now();
      return work(await local.get());
    }
  };
  const sync = (signal?: AbortSignal) => clone.sync(signal);
  return {
    source: { ...source, url: shownUrl(source.url) },
    sync: async (signal) => void (await sync(signal)),
    resolveRef: (revision) => repaired((r) => r.resolveRef(revision)),
    read: (commit) => repaired((r) => r.read(commit)),
    readBody: (oid) => repaired((r) => r.readBody(oid)),
    isAncestor: (a, b) => repaired((r) => r.isAncestor(a, b)),
    subject: (commit) => repaired((r) => r.subject(commit)),
    commit: (commit) => repaired((r) => r.commit(commit)),
    watch: async ({ poll, ...watching }) => {
      void pollRemote(sync, poll === undefined ? watching : { ...watching, every: poll });
    },
    close: async () => void (await open.opened()?.close()),
  };
}

/** Opened at the first use that succeeds, once. */
function late<T>(open: () => Promise<T>): { get(): Promise<T>; opened(): T | null } {
  let value: T | null = null;
  let opening: Promise<T> | null = null;
  return {
    get: () => {
      opening ??= open().then(
        (opened) => {
          value = opened;
          return opened;
        },
        (error) => {
          opening = null;
          throw error;
        },
      );
      return opening;
    },
    opened: () => value,
  };
}

async function credentials(source: Extract<CatalogueSource, { kind: "remote" }>) {
  const { username, password } = new URL(source.url);
  const token = (await source.token?.())?.trim();
  if (token) return { username: decodeURIComponent(username) || "x-access-token", password: token };
  if (!username && !password) return null;
  return { username: decodeURIComponent(username), password: decodeURIComponent(password) };
}
