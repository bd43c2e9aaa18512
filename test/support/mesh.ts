import { execFile, execFileSync } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { eventually } from "./eventually.ts";

const PROJECT = fileURLToPath(new URL("../..", import.meta.url));
const CLI = join(PROJECT, "dist/mesh.js");

export interface CliResult {
  code: number;
  stdout: string;
  stderr: string;
}

/** A whole mesh on this machine: `mesh up`, a work tree that pushes to it, and the CLI. */
export interface Mesh {
  dir: string;
  work: string;
  /** Runs `mesh ARGS`; never throws for an exit code. */
  cli(...args: string[]): Promise<CliResult>;
  /** `mesh ARGS --json`, parsed. Throws with stderr when there is no document. */
  // biome-ignore lint/suspicious/noExplicitAny: tests read documents by their contract
  json<T = any>(...args: string[]): Promise<T>;
  git(...args: string[]): string;
  /** Writes (null: removes) files of the work tree, commits and pushes. Returns the commit. */
  push(files: Record<string, string | object | null>, message?: string): string;
  commit(files: Record<string, string | object | null>, message?: string): string;
  pid(part: string): number;
  up(): Promise<CliResult>;
  /** Until `status --check` is satisfied. */
  converged(within?: number): Promise<void>;
  close(): Promise<void>;
}

function run(args: string[], env: NodeJS.ProcessEnv, cwd: string): Promise<CliResult> {
  return new Promise((done) => {
    execFile(process.execPath, [CLI, ...args], { env, cwd, maxBuffer: 64 << 20 }, (error, stdout, stderr) => {
      const code = error ? (typeof error.code === "number" ? error.code : 1) : 0;
      done({ code, stdout, stderr });
    });
  });
}

/**
 * Starts a mesh from a catalogue folder (default: examples-repo).
 * @param options.catalogue a folder, or files by path
 */
export async function aMesh(
  options: { catalogue?: string | Record<string, string | object> } = {},
): Promise<Mesh> {
  const top = mkdtempSync(join(tmpdir(), "mesh-e2e-"));
  const catalogue = join(top, "catalogue");
  const given = options.catalogue ?? join(PROJECT, "examples-repo");
  if (typeof given === "string") cpSync(given, catalogue, { recursive: true });
  else for (const [path, content] of Object.entries(given)) writeIn(catalogue, path, content);
  const dir = join(top, "mesh");
  const work = join(top, "work");
  const { MESH_CONTEXT: _, ...rest } = process.env;
  const env = { ...rest, GIT_CONFIG_GLOBAL: "/dev/null", GIT_CONFIG_SYSTEM: "/dev/null" };
  const context = join(dir, "context.json");
  const cli = (...args: string[]) => run([...args, "--context", context], env, top);
  const up = () => run(["up", "--catalogue", catalogue, "--dir", dir, "--detach"], env, top);
  const git = (...args: string[]) =>
    execFileSync("git", ["-c", "user.name=Test", "-c", "user.email=test@example.com", ...args], {
      cwd: work,
      env,
      encoding: "utf8",
      stdio: ["ignore", "pipe", "pipe"],
    }).trim();
  const commit = (files: Record<string, string | object | null>, message = "change") => {
    for (const [path, content] of Object.entries(files)) {
      if (content === null) rmSync(join(work, path), { recursive: true, force: true });
      else writeIn(work, path, content);
    }
    git("add", "-A");
    git("commit", "-q", "--allow-empty", "-m", message);
    return git("rev-parse", "HEAD");
  };

  const started = await up();
  if (started.code !== 0)
    throw new Error(`mesh up failed (${started.code}): ${started.stdout}${started.stderr}`);
  execFileSync("git", ["clone", "-q", join(dir, "catalogue.git"), work], { env, stdio: "ignore" });

  return {
    dir,
    work,
    cli,
    async json(...args) {
      const { stdout, stderr, code } = await cli(...args, "--json");
      if (stdout === "") throw new Error(`mesh ${args.join(" ")}: exit ${code}: ${stderr}`);
      return JSON.parse(stdout);
    },
    git,
    commit,
    push(files, message) {
      const commitId = commit(files, message);
      git("push", "-q", "origin", "HEAD:main");
      return commitId;
    },
    pid: (part) =>
      Number(
        readFileSync(join(dir, "run", `${part}.pid`), "utf8")
          .trim()
          .split(/\s/)[0],
      ),
    up,
    converged: async (within = 60_000) => {
      await eventually(
        async () => {
          const { code, stdout, stderr } = await cli("status", "--check");
          if (code !== 0) throw new Error(`not converged: ${stdout}${stderr}`);
        },
        { within, every: 200 },
      );
    },
    async close() {
      await run(["down", "--dir", dir, "--purge"], env, top);
      rmSync(top, { recursive: true, force: true });
    },
  };
}

function writeIn(dir: string, path: string, content: string | object): void {
  const file = join(dir, path);
  execFileSync("mkdir", ["-p", join(file, "..")]);
  writeFileSync(file, typeof content === "string" ? content : JSON.stringify(content, null, 2));
}
