import { type ChildProcess, spawn } from "node:child_process";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

/** The folder of the built programs. */
export const PROGRAMS = process.env.MESH_DIST ?? fileURLToPath(new URL("../../dist", import.meta.url));
export const MESH = join(PROGRAMS, "mesh.js");
export const EXAMPLES = fileURLToPath(new URL("../../examples-repo", import.meta.url));

export interface Ran {
  code: number | null;
  signal: string | null;
  stdout: string;
  stderr: string;
}

export interface RunOptions {
  cwd?: string;
  env?: NodeJS.ProcessEnv;
}

/** Starts `mesh` as a user would. Nothing of this process's mesh variables reaches it. */
export function startMesh(args: string[], options: RunOptions = {}): ChildProcess {
  const inherited = Object.entries(process.env).filter(([name]) => !/^(MESH_|NODE_OPTIONS)/.test(name));
  const env = { ...Object.fromEntries(inherited), NO_COLOR: "1", ...options.env };
  return spawn(process.execPath, [MESH, ...args], {
    cwd: options.cwd,
    env,
    stdio: ["ignore", "pipe", "pipe"],
  });
}

export async function runMesh(args: string[], options: RunOptions = {}): Promise<Ran> {
  const child = startMesh(args, options);
  const out: Buffer[] = [];
  const err: Buffer[] = [];
  child.stdout?.on("data", (chunk: Buffer) => out.push(chunk));
  child.stderr?.on("data", (chunk: Buffer) => err.push(chunk));
  return new Promise((resolve) => {
    child.once("close", (code, signal) =>
      resolve({ code, signal, stdout: Buffer.concat(out).toString(), stderr: Buffer.concat(err).toString() }),
    );
  });
}

/** Runs a line of shell in which `mesh` is the program. */
export async function shell(line: string, options: RunOptions = {}): Promise<Ran> {
  const env = { ...process.env, NO_COLOR: "1", ...options.env };
  const script = `mesh() { "${process.execPath}" "${MESH}" "$@"; }; ${line}`;
  const child = spawn("bash", ["-c", script], { cwd: options.cwd, env, stdio: ["ignore", "pipe", "pipe"] });
  let stdout = "";
  let stderr = "";
  child.stdout.on("data", (chunk: Buffer) => {
    stdout += chunk;
  });
  child.stderr.on("data", (chunk: Buffer) => {
    stderr += chunk;
  });
  return new Promise((resolve) => {
    child.once("close", (code, signal) => resolve({ code, signal, stdout, stderr }));
  });
}
