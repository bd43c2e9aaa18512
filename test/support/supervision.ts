import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, readFileSync, realpathSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir, userInfo } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { createSupervisor, type SupervisorOptions } from "../../src/host/supervision/supervisor.ts";
import type { ProcessSpec, Supervisor } from "../../src/host/supervision/types.ts";
import type { HostEvent } from "../../src/report/schema.ts";

/** Path of a program in test/fixtures/programs. */
export const program = (name: string) =>
  fileURLToPath(new URL(`../fixtures/programs/${name}`, import.meta.url));

export const isRoot = process.getuid?.() === 0;

/** A service that is proven after 50 ms and restarted soon; `change` says what is special about it. */
export function aProcess(change: Partial<ProcessSpec> & { command: string[] }): ProcessSpec {
  return {
    id: "web.server",
    name: "web",
    digest: JSON.stringify(change),
    env: {},
    envFiles: [],
    user: null,
    cwd: "/",
    run: "service",
    schedule: null,
    check: null,
    minUp: 50,
    checkEvery: 100,
    reload: null,
    restart: { first: 20, max: 100, resetAfter: 60_000, rollbackAfter: 3, haltAfter: 5 },
    stop: { signal: "SIGTERM", grace: 1_000 },
    limits: { memory: null, cpu: null },
    ...change,
  };
}

/** A state folder and the supervisors ("hosts") that came and went over it. `end` stops what they run and removes the folder. */
export function aHost(options: Partial<SupervisorOptions> = {}) {
  const dir = realpathSync(mkdtempSync(join(tmpdir(), "mesh-supervision-")));
  const me = userInfo();
  const events: Array<HostEvent & { id: string }> = [];
  let current: Supervisor | null = null;
  const host = {
    dir,
    events,
    kinds: () => events.map((event) => event.kind),
    async start(more: Partial<SupervisorOptions> = {}): Promise<Supervisor> {
      const supervisor = createSupervisor({
        dir: join(dir, "state"),
        invoker: { uid: me.uid, gid: me.gid, name: me.username },
        real: false,
        path: process.env.PATH ?? "",
        ...options,
        ...more,
      });
      supervisor.onChange((id, event) => event && events.push({ ...event, id }));
      await supervisor.resume();
      current = supervisor;
      return supervisor;
    },
    async restart(more: Partial<SupervisorOptions> = {}): Promise<Supervisor> {
      await current?.close();
      return host.start(more);
    },
    async end(): Promise<void> {
      await current?.close();
      const last = await host.start();
      for (const { id } of last.list()) await last.remove(id);
      await last.close();
      rmSync(dir, { recursive: true, force: true });
    },
  };
  return host;
}

export function textOf(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return "";
  }
}

export const linesIn = (file: string) => textOf(file).split("\n").filter(Boolean);

export function lives(pid: number): boolean {
  const state = /\) (\S)/.exec(textOf(`/proc/${pid}/stat`))?.[1];
  return state !== undefined && state !== "Z";
}

export async function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const server = createServer().listen(0, "127.0.0.1", () => {
      const address = server.address();
      server.close(() => resolve(typeof address === "object" && address ? address.port : 0));
    });
  });
}

/**
 * A host's supervision over `dir` as a program of its own; resolves when it is up, or when it died at `fault`
 * (at once where not to wait).
 * `leak`: a descriptor that it gets as its 40th, without close-on-exec.
 */
export async function killableHost(
  dir: string,
  fault: string,
  spec: ProcessSpec | null,
  given: { env?: Record<string, string>; leak?: number; wait?: boolean } = {},
): Promise<ChildProcess> {
  const outfile = `${dir}.host.mjs`;
  const entry = fileURLToPath(new URL("./supervise-until-killed.ts", import.meta.url));
  await build({
    entryPoints: [entry],
    bundle: true,
    platform: "node",
    format: "esm",
    outfile,
    logLevel: "error",
  });
  const more = given.leak === undefined ? [] : [...Array<"ignore">(37).fill("ignore"), given.leak];
  const child = spawn(process.execPath, [outfile, dir, fault, spec ? JSON.stringify(spec) : ""], {
    stdio: ["ignore", "pipe", "inherit", ...more],
    env: { ...process.env, ...given.env },
  });
  if (given.wait === false) return child;
  await new Promise<void>((done) => {
    child.stdout?.once("data", () => done());
    child.once("exit", () => done());
  });
  return child;
}
