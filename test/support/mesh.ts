import { spawn } from "node:child_process";
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import pg from "pg";
import { converged } from "../../src/cli/commands/status.ts";
import type { PlanDoc, StatusDoc } from "../../src/cli/documents.ts";
import { type Link, linkTo } from "../../src/cli/link.ts";
import { eventually } from "./eventually.ts";
import { type Files, meshCatalogue } from "./mesh-catalogue.ts";
import { EXAMPLES, MESH, type Ran, runMesh } from "./mesh-program.ts";
import { git as runGit } from "./repository.ts";

// biome-ignore lint/suspicious/noExplicitAny: tests read documents by their contract
type Json = any;

export interface MeshOptions {
  /** A folder, or files by path; default: `meshCatalogue` with `change`. */
  catalogue?: string | Files;
  change?: Parameters<typeof meshCatalogue>[1];
  env?: NodeJS.ProcessEnv;
}

/**
 * A whole mesh on this machine: `mesh up`, a work tree that pushes to it, and the command line. Each has a subnet of its own,
 * so that several live side by side. Ends with `close()`, or when this process ends, however it ends.
 */
export class Mesh {
  readonly top = mkdtempSync(join(tmpdir(), "mesh-e2e-"));
  readonly dir = join(this.top, "mesh");
  readonly work = join(this.top, "work");
  readonly catalogue = join(this.top, "catalogue");
  readonly context = join(this.dir, "context.json");
  /** A file of a fault point's name in here kills the first program that comes there. */
  readonly faults = join(this.top, "faults");
  readonly subnet: string;
  private readonly env: NodeJS.ProcessEnv;
  private readonly reaper: ReturnType<typeof spawn>;
  private link: Promise<Link> | null = null;
  private client: pg.Client | null = null;

  constructor(options: MeshOptions) {
    this.subnet = `127.${1 + Math.floor(Math.random() * 253)}.${Math.floor(Math.random() * 254)}`;
    mkdirSync(this.faults);
    this.env = { MESH_FAULT: `@${this.faults}`, ...options.env };
    const given = options.catalogue ?? meshCatalogue(this.subnet, options.change);
    if (typeof given === "string") cpSync(given, this.catalogue, { recursive: true });
    else for (const [path, content] of Object.entries(given)) writeIn(this.catalogue, path, content);
    this.reaper = reaperOf(this);
  }

  /** Runs `mesh ARGS`; never throws for an exit code. */
  cli(...args: string[]): Promise<Ran> {
    return runMesh([...args, "--context", this.context], { cwd: this.top });
  }

  /** `mesh ARGS --json`, parsed. Throws with stderr when there is no document. */
  async json<T = Json>(...args: string[]): Promise<T> {
    const { stdout, stderr, code } = await this.cli(...args, "--json");
    if (stdout === "") throw new Error(`mesh ${args.join(" ")}: exit ${code}: ${stderr}`);
    return JSON.parse(stdout);
  }

  get broker(): string {
    return JSON.parse(readFileSync(this.context, "utf8")).broker;
  }

  /** Asks the controller over a connection that is kept: what `--json` would print, without a program for each question. */
  async ask<T = Json>(verb: string, body: object = {}): Promise<T> {
    this.link ??= linkTo(this.broker, "test");
    const link = await this.link.catch((error: unknown) => {
      this.link = null;
      throw error;
    });
    return link.controller<T>(verb, body);
  }

  status(): Promise<StatusDoc> {
    return this.ask<StatusDoc>("status");
  }

  plan(id: number | "latest" = "latest"): Promise<PlanDoc> {
    return this.ask<PlanDoc>("plan", { id });
  }

  async node(name: string): Promise<Json> {
    return this.ask("node", { name });
  }

  /** The state of one node in `mesh status`; undefined where it is not listed. */
  async stateOf(name: string): Promise<string | undefined> {
    return (await this.status()).nodes.find((node) => node.name === name)?.state;
  }

  async up(...args: string[]): Promise<Ran> {
    return runMesh(["up", "--catalogue", this.catalogue, "--dir", this.dir, "--detach", ...args], {
      cwd: this.top,
      env: this.env,
    });
  }

  down(...args: string[]): Promise<Ran> {
    return runMesh(["down", "--dir", this.dir, ...args], { cwd: this.top });
  }

  git(...args: string[]): string {
    return runGit(this.work, ...args);
  }

  /** Writes (null: removes) files of the work tree and commits them. Returns the commit. */
  commit(files: Files, message = "change"): string {
    for (const [path, content] of Object.entries(files)) writeIn(this.work, path, content);
    this.git("add", "-A");
    this.git("commit", "-q", "--allow-empty", "-m", message);
    return this.git("rev-parse", "HEAD");
  }

  /** Commits and pushes. Returns the commit. */
  push(files: Files, message?: string): string {
    const commit = this.commit(files, message);
    this.git("push", "-q", "origin", "HEAD:main");
    return commit;
  }

  /** Of a part as in run/<part>.pid: "controller", "nats", "postgres", "up", "host-<node>". */
  pid(part: string): number {
    return Number(readFileSync(join(this.dir, "run", `${part}.pid`), "utf8").trim());
  }

  kill(part: string, signal: NodeJS.Signals = "SIGKILL"): number {
    const pid = this.pid(part);
    process.kill(pid, signal);
    return pid;
  }

  /** kill -9, and until `mesh up` has it running again. */
  async killed(part: string, within = 15_000): Promise<void> {
    const before = this.kill(part);
    await eventually(() => this.pid(part) !== before && isAlive(this.pid(part)), { within });
  }

  /** Makes the next program that comes to this fault point die there. */
  arm(point: string): void {
    writeFileSync(join(this.faults, point), "");
  }

  /** Until a program died at this point. */
  async died(point: string, within = 30_000): Promise<void> {
    await eventually(() => !existsSync(join(this.faults, point)), { within });
  }

  /** Until `status --check` would be satisfied, with this commit deployed everywhere. */
  async converged(commit?: string, within = 60_000): Promise<void> {
    await eventually(
      async () => {
        const doc = await this.status();
        const there = commit === undefined || (doc.catalogue.commit === commit && isEverywhere(doc, commit));
        if (!converged(doc) || !there) throw new Error(`not converged: ${await this.trouble(doc)}`);
      },
      { within, every: 100 },
    );
  }

  private async trouble(doc: StatusDoc): Promise<string> {
    const plan = await this.plan().catch((error: unknown) => String(error));
    return JSON.stringify({ status: doc, plan }, null, 1);
  }

  /** A file on a node, by its declared path; null where it is absent. */
  file(node: string, path: string): string | null {
    const file = this.real(node, path);
    return existsSync(file) ? readFileSync(file, "utf8") : null;
  }

  real(node: string, path: string): string {
    return join(this.dir, "nodes", node, "root", path);
  }

  /** The processes that run this program (by its declared path) on a node; their keepers are not among them. */
  running(node: string, program: string): number[] {
    const path = this.real(node, program);
    return readdirSync("/proc")
      .filter((entry) => /^\d+$/.test(entry))
      .map(Number)
      .filter((pid) => argumentsOf(pid)[1] === path);
  }

  async http(node: number, port: number): Promise<string> {
    const answer = await fetch(`http://${this.subnet}.${node}:${port}/`, {
      signal: AbortSignal.timeout(2_000),
    });
    return (await answer.text()).trim();
  }

  /** One statement on the mesh's own database. */
  async sql<T = Json>(text: string, values: unknown[] = []): Promise<T[]> {
    if (!this.client) {
      const client = new pg.Client({
        connectionString: JSON.parse(readFileSync(this.context, "utf8")).store,
      });
      client.on("error", () => {
        this.client = null;
      });
      await client.connect();
      this.client = client;
    }
    return (await this.client.query(text, values)).rows as T[];
  }

  log(part: string): string {
    return readFileSync(join(this.dir, "logs", `${part}.log`), "utf8");
  }

  async close(): Promise<void> {
    await this.client?.end().catch(() => {});
    await (await this.link?.catch(() => null))?.close();
    const { code, stderr } = await this.down("--purge");
    this.reaper.stdin?.end("done\n");
    rmSync(this.top, { recursive: true, force: true });
    if (code !== 0) throw new Error(`mesh down: ${stderr}`);
  }
}

/** Starts a mesh and clones its catalogue. */
export async function aMesh(options: MeshOptions = {}): Promise<Mesh> {
  const mesh = new Mesh(options);
  const { code, stdout, stderr } = await mesh.up();
  if (code !== 0) {
    await mesh.close().catch(() => {});
    throw new Error(`mesh up failed (${code}): ${stdout}${stderr}`);
  }
  runGit(mesh.top, "clone", "-q", join(mesh.dir, "catalogue.git"), mesh.work);
  return mesh;
}

export { EXAMPLES };

export function isAlive(pid: number): boolean {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    return !/\) [ZX] /.test(stat);
  } catch {
    return false;
  }
}

function isEverywhere(doc: StatusDoc, commit: string): boolean {
  return doc.nodes.every(
    (node) => node.state === "released" || node.state === "retired" || node.commit === commit,
  );
}

function argumentsOf(pid: number): string[] {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0");
  } catch {
    return [];
  }
}

function writeIn(dir: string, path: string, content: string | object | null): void {
  const file = join(dir, path);
  if (content === null) {
    rmSync(file, { recursive: true, force: true });
    return;
  }
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, typeof content === "string" ? content : JSON.stringify(content, null, 2));
}

// When the test's process ends without close(), the pipe closes without a word: then the mesh goes all the same.
const REAPER = `read -r word || { "$1" "$2" down --dir "$3" --purge; rm -rf "$4"; } >/dev/null 2>&1`;

function reaperOf({ dir, top }: Mesh): ReturnType<typeof spawn> {
  const child = spawn("sh", ["-c", REAPER, "reaper", process.execPath, MESH, dir, top], {
    cwd: "/",
    detached: true,
    stdio: ["pipe", "ignore", "ignore"],
  });
  child.unref();
  return child;
}
