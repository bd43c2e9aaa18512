import fs from "node:fs";
import git from "isomorphic-git";
import { messageOf } from "../errors.ts";
import {
  type Commit,
  type GitReader,
  GitUnreadable,
  ObjectMissing,
  type ObjectType,
  parseCommit,
  parseRevision,
  parseTree,
  RefMissing,
  refCandidates,
  type TreeEntry,
} from "./git-objects.ts";

/** Reads a repository without git on the machine. Slower; does not follow objects/info/alternates. */
export class IsomorphicGit implements GitReader {
  readonly kind = "isomorphic";
  readonly #gitDir: string;
  #cache: object = {};
  #packs = "";

  constructor(gitDir: string) {
    this.#gitDir = gitDir;
  }

  async resolve(revision: string): Promise<string> {
    const parsed = parseRevision(revision);
    if (!parsed) throw new RefMissing({ repository: this.#gitDir, ref: `ref ${JSON.stringify(revision)}` });
    this.#dropStaleCache();
    let oid = await this.#base(parsed.base);
    for (const [step, count] of parsed.steps) {
      for (let i = 0; i < (step === "~" ? count : Math.min(count, 1)); i++) {
        const parent = (await this.readCommit(oid)).parents[step === "~" ? 0 : count - 1];
        if (!parent) throw new RefMissing({ repository: this.#gitDir, ref: `ref ${revision}` });
        oid = parent;
      }
    }
    return oid;
  }

  async #base(base: string): Promise<string> {
    this.#mustBeRepository();
    const names = refCandidates(base);
    // Twice: packed refs are read before loose ones, so a ref packed in between is missed once.
    for (const name of [...names, ...names]) {
      const oid = await git.resolveRef({ fs, gitdir: this.#gitDir, ref: name }).catch(() => null);
      if (oid) return this.#peel(oid, name);
    }
    if (/^[0-9a-f]{4,40}$/.test(base)) {
      const oid = await git
        .expandOid({ fs, gitdir: this.#gitDir, oid: base, cache: this.#cache })
        .catch(() => null);
      if (oid) return this.#peel(oid, base);
    }
    throw new RefMissing({ repository: this.#gitDir, ref: `ref ${names[0]}` });
  }

  /** The commit that an annotated tag (of a tag …) points to. */
  async #peel(oid: string, name: string): Promise<string> {
    let at = oid;
    for (let depth = 0; depth < 10; depth++) {
      const found = await this.#read(at);
      if (found?.type === "commit") return at;
      const target =
        found?.type === "tag"
          ? /^object ([0-9a-f]{40})$/m.exec(found.bytes.toString("utf8"))?.[1]
          : undefined;
      if (!target) break;
      at = target;
    }
    throw new ObjectMissing({ repository: this.#gitDir, oid: at, wanted: `the commit of ${name}` });
  }

  #mustBeRepository(): void {
    if (!fs.existsSync(`${this.#gitDir}/objects`) || !fs.existsSync(`${this.#gitDir}/HEAD`))
      throw new GitUnreadable({ repository: this.#gitDir, why: "it is not a Git repository" });
  }

  /** Packs that are gone, and their bytes, must not be held: the cache is dropped whenever the list of packs changed. */
  #dropStaleCache(): void {
    let packs = "";
    try {
      packs = fs.readdirSync(`${this.#gitDir}/objects/pack`).sort().join();
    } catch {
      // A repository without packs has no such folder.
    }
    if (packs !== this.#packs) this.#cache = {};
    this.#packs = packs;
  }

  async #read(oid: string): Promise<{ type: ObjectType; bytes: Buffer } | null> {
    if (!/^[0-9a-f]{40}$/.test(oid)) return null;
    for (let attempt = 0; ; attempt++) {
      try {
        const found = await git.readObject({
          fs,
          gitdir: this.#gitDir,
          oid,
          format: "content",
          cache: this.#cache,
        });
        return { type: found.type as ObjectType, bytes: Buffer.from(found.object as Uint8Array) };
      } catch (cause) {
        // A repack removes the pack between listing and reading it: once more, with fresh eyes.
        this.#cache = {};
        if (attempt < 1) continue;
        if ((cause as { code?: string }).code === "NotFoundError") return null;
        throw new GitUnreadable({ repository: this.#gitDir, why: `${oid}: ${messageOf(cause)}` }, { cause });
      }
    }
  }

  async #object<T>(oid: string, type: ObjectType, parse: (bytes: Buffer) => T): Promise<T> {
    const found = await this.#read(oid);
    if (found?.type !== type) {
      this.#mustBeRepository();
      throw new ObjectMissing({ repository: this.#gitDir, oid, wanted: type });
    }
    try {
      return parse(found.bytes);
    } catch (cause) {
      throw new GitUnreadable({ repository: this.#gitDir, why: messageOf(cause) }, { cause });
    }
  }

  readCommit(oid: string): Promise<Commit> {
    return this.#object(oid, "commit", (bytes) => parseCommit(oid, bytes));
  }

  readTree(oid: string): Promise<TreeEntry[]> {
    return this.#object(oid, "tree", parseTree);
  }

  readBlob(oid: string): Promise<Buffer> {
    return this.#object(oid, "blob", (bytes) => bytes);
  }

  async isAncestor(ancestor: string, commit: string): Promise<boolean> {
    if (ancestor === commit) return true;
    if ((await this.readCommit(commit)).parents.includes(ancestor)) return true;
    if ((await this.#read(ancestor))?.type !== "commit") return false;
    const seen = new Set([commit]);
    for (let level = [commit]; level.length > 0; ) {
      const next: string[] = [];
      for (const oid of level) {
        for (const parent of (await this.readCommit(oid)).parents) {
          if (parent === ancestor) return true;
          if (!seen.has(parent)) next.push(parent);
          seen.add(parent);
        }
      }
      level = next;
    }
    return false;
  }

  reset(): void {
    this.#cache = {};
  }

  async close(): Promise<void> {
    this.#cache = {};
  }
}
