import { type ChildProcessWithoutNullStreams, execFile, spawn } from "node:child_process";
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

interface Found {
  oid: string;
  type: ObjectType;
  bytes: Buffer;
}

interface Ask {
  name: string;
  tries: number;
  done: (found: Found | null) => void;
  fail: (error: Error) => void;
}

/** How long one answer may take before the process is taken for stuck. */
const STUCK_MS = 30_000;

/**
 * One long-lived `git cat-file --batch`. Asks are pipelined and answered in order. A process that dies is started again
 * and asked again; when it dies twice at one ask, that and all behind it fail.
 */
class CatFile {
  readonly #gitDir: string;
  #child: ChildProcessWithoutNullStreams | null = null;
  #asks: Ask[] = [];
  #chunks: Buffer[] = [];
  #length = 0;
  #stderr = "";
  #timer: NodeJS.Timeout | null = null;
  #closed = false;

  constructor(gitDir: string) {
    this.#gitDir = gitDir;
  }

  get pid(): number | undefined {
    return this.#child?.pid;
  }

  ask(name: string): Promise<Found | null> {
    return new Promise((done, fail) => {
      if (this.#closed) return fail(new GitUnreadable({ repository: this.#gitDir, why: "it was closed" }));
      const ask = { name, tries: 0, done, fail };
      this.#asks.push(ask);
      if (!this.#child) this.#start();
      else this.#child.stdin.write(`${name}\n`);
      this.#watch();
    });
  }

  stop(): void {
    const child = this.#child;
    this.#child = null;
    this.#chunks = [];
    this.#length = 0;
    if (this.#timer) clearTimeout(this.#timer);
    this.#timer = null;
    child?.stdin.destroy();
    child?.kill("SIGKILL");
    if (!this.#closed && this.#asks.length > 0) this.#start();
  }

  close(): void {
    this.#closed = true;
    this.stop();
    for (const ask of this.#asks.splice(0))
      ask.fail(new GitUnreadable({ repository: this.#gitDir, why: "it was closed" }));
  }

  #start(): void {
    const child = spawn("git", ["--no-replace-objects", `--git-dir=${this.#gitDir}`, "cat-file", "--batch"], {
      stdio: ["pipe", "pipe", "pipe"],
      cwd: "/",
    });
    this.#child = child;
    this.#stderr = "";
    child.stdout.on("data", (chunk: Buffer) => this.#child === child && this.#take(chunk));
    child.stderr.on("data", (chunk: Buffer) => {
      this.#stderr = (this.#stderr + chunk.toString()).slice(-2000);
    });
    // EPIPE comes with the death of the process, which `close` tells with its reason.
    child.stdin.on("error", () => {});
    child.on("error", (error) => this.#died(child, messageOf(error)));
    child.on("close", () => this.#died(child, this.#stderr.trim().split("\n").at(-1) || "git ended"));
    child.stdin.write(this.#asks.map((ask) => `${ask.name}\n`).join(""));
  }

  #died(child: ChildProcessWithoutNullStreams, why: string): void {
    if (this.#child !== child) return;
    this.#child = null;
    this.#chunks = [];
    this.#length = 0;
    const head = this.#asks[0];
    if (head && ++head.tries >= 2) {
      // All that wait fail with it: asked one by one, each could cost two more starts of a git that cannot work.
      for (const ask of this.#asks.splice(0)) ask.fail(new GitUnreadable({ repository: this.#gitDir, why }));
    }
    if (this.#asks.length > 0) this.#start();
    this.#watch();
  }

  #watch(): void {
    if (this.#timer) clearTimeout(this.#timer);
    this.#timer = null;
    if (this.#asks.length === 0) return;
    this.#timer = setTimeout(() => {
      const child = this.#child;
      child?.kill("SIGKILL");
      if (child) this.#died(child, `no answer within ${STUCK_MS / 1000} s`);
    }, STUCK_MS);
  }

  #take(chunk: Buffer): void {
    this.#chunks.push(chunk);
    this.#length += chunk.length;
    let progressed = false;
    while (this.#asks.length > 0 && this.#answer()) progressed = true;
    if (progressed) this.#watch();
  }

  /** Answers the oldest ask when its whole answer is here. */
  #answer(): boolean {
    let first = this.#chunks[0];
    if (!first) return false;
    let end = first.indexOf(0x0a);
    if (end < 0) {
      first = this.#join();
      end = first.indexOf(0x0a);
      if (end < 0) return false;
    }
    const header = first.toString("utf8", 0, end);
    const match = /^([0-9a-f]{40,64}) (blob|tree|commit|tag) (\d+)$/.exec(header);
    if (!match) {
      this.#drop(end + 1);
      this.#asks.shift()?.done(null);
      return true;
    }
    const size = Number(match[3]);
    if (this.#length < end + 1 + size + 1) return false;
    const all = first.length >= end + 2 + size ? first : this.#join();
    // Copied: a slice would keep a whole 64 KiB chunk alive for a small file that is held for long.
    const bytes = Buffer.from(all.subarray(end + 1, end + 1 + size));
    this.#drop(end + 1 + size + 1);
    this.#asks.shift()?.done({ oid: match[1] as string, type: match[2] as ObjectType, bytes });
    return true;
  }

  #join(): Buffer {
    const all = Buffer.concat(this.#chunks);
    this.#chunks = [all];
    return all;
  }

  #drop(count: number): void {
    this.#length -= count;
    const first = this.#chunks[0] as Buffer;
    if (first.length > count) this.#chunks[0] = first.subarray(count);
    else this.#chunks.shift();
  }
}

/** Reads a repository through git itself. `gitDir` is the folder that holds `objects` and `refs`. */
export class BatchGit implements GitReader {
  readonly kind = "git";
  readonly #gitDir: string;
  readonly #cat: CatFile;

  constructor(gitDir: string) {
    this.#gitDir = gitDir;
    this.#cat = new CatFile(gitDir);
  }

  /** The process that answers, for tests that end it. */
  get pid(): number | undefined {
    return this.#cat.pid;
  }

  async resolve(revision: string): Promise<string> {
    const parsed = parseRevision(revision);
    if (!parsed) throw new RefMissing({ repository: this.#gitDir, ref: `ref ${JSON.stringify(revision)}` });
    let oid = await this.#base(parsed.base);
    for (const [step, count] of parsed.steps) oid = await this.#step(oid, step, count, revision);
    return oid;
  }

  async #base(base: string): Promise<string> {
    const names = /^[0-9a-f]{7,40}$/.test(base) ? [...refCandidates(base), base] : refCandidates(base);
    for (const name of names) {
      const found = await this.#cat.ask(`${name}^{commit}`);
      if (found && found.oid.length !== 40)
        throw new GitUnreadable({ repository: this.#gitDir, why: "its object format is not sha1" });
      if (found?.type === "commit") return found.oid;
    }
    for (const name of names) {
      const oid = await this.#refOnly(name);
      if (oid) throw new ObjectMissing({ repository: this.#gitDir, oid, wanted: `the commit of ${name}` });
    }
    throw new RefMissing({ repository: this.#gitDir, ref: `ref ${names[0]}` });
  }

  async #step(oid: string, step: "~" | "^", count: number, revision: string): Promise<string> {
    let at = oid;
    for (let i = 0; i < (step === "~" ? count : Math.min(count, 1)); i++) {
      const parent = (await this.readCommit(at)).parents[step === "~" ? 0 : count - 1];
      if (!parent) throw new RefMissing({ repository: this.#gitDir, ref: `ref ${revision}` });
      at = parent;
    }
    return at;
  }

  /** The id that a ref holds although its object is gone; null when there is no such ref. */
  #refOnly(name: string): Promise<string | null> {
    const args = [`--git-dir=${this.#gitDir}`, "rev-parse", "--verify", "-q", name];
    return new Promise((done, fail) =>
      execFile("git", args, { timeout: STUCK_MS }, (error, stdout, stderr) => {
        if (!error) return done(stdout.trim());
        if (stderr.includes("not a git repository"))
          return fail(new GitUnreadable({ repository: this.#gitDir, why: "it is not a Git repository" }));
        done(null);
      }),
    );
  }

  async #object(oid: string, type: ObjectType): Promise<Buffer> {
    const found = /^[0-9a-f]{40}$/.test(oid) ? await this.#cat.ask(oid) : null;
    if (!found || found.type !== type)
      throw new ObjectMissing({ repository: this.#gitDir, oid, wanted: type });
    return found.bytes;
  }

  async readCommit(oid: string): Promise<Commit> {
    return this.#parsed(
      () => this.#object(oid, "commit"),
      (bytes) => parseCommit(oid, bytes),
    );
  }

  async readTree(oid: string): Promise<TreeEntry[]> {
    return this.#parsed(() => this.#object(oid, "tree"), parseTree);
  }

  readBlob(oid: string): Promise<Buffer> {
    return this.#object(oid, "blob");
  }

  async #parsed<T>(read: () => Promise<Buffer>, parse: (bytes: Buffer) => T): Promise<T> {
    const bytes = await read();
    try {
      return parse(bytes);
    } catch (cause) {
      throw new GitUnreadable({ repository: this.#gitDir, why: messageOf(cause) }, { cause });
    }
  }

  async isAncestor(ancestor: string, commit: string): Promise<boolean> {
    if (ancestor === commit) return true;
    const newest = await this.readCommit(commit);
    if (newest.parents.includes(ancestor)) return true;
    if (!(await this.#cat.ask(ancestor))) return false;
    const args = [`--git-dir=${this.#gitDir}`, "merge-base", "--is-ancestor", ancestor, commit];
    return new Promise((done, fail) =>
      execFile("git", args, { timeout: STUCK_MS }, (error, _stdout, stderr) => {
        if (!error) return done(true);
        if (error.code === 1) return done(false);
        const why = stderr.trim().split("\n").at(-1) || messageOf(error);
        fail(new GitUnreadable({ repository: this.#gitDir, why }, { cause: error }));
      }),
    );
  }

  reset(): void {
    this.#cat.stop();
  }

  async close(): Promise<void> {
    this.#cat.close();
  }
}
