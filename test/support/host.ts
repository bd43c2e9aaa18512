import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import {
  existsSync,
  lstatSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Declaration, DeclarationBody } from "../../src/declaration/schema.ts";
import type { DeclaredResource } from "../../src/resources/declared.ts";
import { bundled } from "./bundle.ts";

type Of<T extends DeclaredResource["type"]> = Extract<DeclaredResource, { type: T }>;

const digestOf = (value: unknown) => createHash("sha256").update(JSON.stringify(value)).digest("hex");

function declared<T extends DeclaredResource["type"]>(
  id: string,
  fields: Omit<Of<T>, "id" | "module" | "requires" | "takes" | "digest">,
  takes: string[] = [],
): Of<T> {
  const module = id.slice(0, id.indexOf("."));
  return { id, module, requires: [], takes, digest: digestOf(fields), ...fields } as unknown as Of<T>;
}

export const aFile = (id: string, path: string, text: string, more: Partial<Of<"file">> = {}) =>
  declared<"file">(
    id,
    {
      type: "file",
      path,
      body: more.body ?? { text },
      owner: more.owner ?? null,
      group: more.group ?? null,
      mode: more.mode ?? "0644",
    },
    more.takes,
  );
export const aDirectory = (id: string, path: string, more: Partial<Of<"directory">> = {}) =>
  declared<"directory">(
    id,
    {
      type: "directory",
      path,
      owner: more.owner ?? null,
      group: more.group ?? null,
      mode: more.mode ?? "0755",
    },
    more.takes,
  );
export const aUser = (id: string, name: string, more: Partial<Of<"user">> = {}) =>
  declared<"user">(id, {
    type: "user",
    name,
    uid: null,
    gid: null,
    groups: [],
    home: null,
    shell: null,
    system: true,
    remove: false,
    ...more,
  });
export const aGroup = (id: string, name: string, more: Partial<Of<"group">> = {}) =>
  declared<"group">(id, { type: "group", name, gid: null, remove: false, ...more });
export const aService = (id: string, command: string[], more: Partial<Of<"process">> = {}) =>
  declared<"process">(
    id,
    {
      type: "process",
      name: id.slice(id.indexOf(".") + 1),
      command,
      env: {},
      envFrom: [],
      user: null,
      cwd: null,
      run: "service",
      schedule: null,
      restartOn: [],
      reloadOn: [],
      reload: null,
      check: null,
      minUp: 100,
      restart: { first: 50, max: 200, resetAfter: 60_000, rollbackAfter: 3, haltAfter: 5 },
      stop: { signal: "SIGTERM", grace: 2_000 },
      limits: { memory: null, cpu: null },
      ...more,
    },
    more.takes,
  );

/** A declaration of these resources; modules in the order in which they come. */
export function aDeclarationOf(
  resources: DeclaredResource[],
  more: { sequence?: number; requires?: Record<string, string[]>; body?: Partial<DeclarationBody> } = {},
): Declaration {
  const names = [...new Set(resources.map(({ module }) => module))];
  const body: DeclarationBody = {
    format: 1,
    node: "web-1",
    address: "127.0.0.1",
    mode: "enforce",
    host: { check: 100, reconcile: 5_000, heartbeat: 30_000 },
    modules: names.map((name) => ({ name, requires: more.requires?.[name] ?? [] })),
    resources,
    ...more.body,
  };
  return {
    revision: digestOf(body),
    sequence: more.sequence ?? 1,
    commit: "c".repeat(40),
    tier: 2,
    body,
    signature: "",
  };
}

export interface Ran {
  code: number | null;
  signal: string | null;
  out: string;
  err: string;
}

/** The program mesh-host over a root of its own (or "/"), with everything it started ended afterwards. */
export async function hostProgram(root?: string) {
  const program = await bundled(fileURLToPath(new URL("../../src/host/main.ts", import.meta.url)));
  const dir = realpathSync(mkdtempSync(join(tmpdir(), "mesh-host-")));
  const at = root ?? join(dir, "root");
  const children: ChildProcess[] = [];
  const stateDir = join(at, "var/lib/mesh-host");
  const call = (args: string[], env: NodeJS.ProcessEnv = {}): Ran => {
    const ran = spawnSync(
      "sh",
      ["-c", 'umask 077; exec "$@"', "sh", process.execPath, program.file, ...args],
      {
        encoding: "utf8",
        env: { ...process.env, MESH_BROKER: "", MESH_CONTEXT: join(dir, "none.json"), ...env },
      },
    );
    return { code: ran.status, signal: ran.signal, out: ran.stdout, err: ran.stderr };
  };
  const file = (declaration: Declaration) => {
    const path = join(dir, `${randomBytes(4).toString("hex")}.json`);
    writeFileSync(path, JSON.stringify(declaration));
    return path;
  };
  return {
    dir,
    root: at,
    stateDir,
    real: (path: string) => (at === "/" ? path : at + path),
    call,
    apply: (declaration: Declaration, env: NodeJS.ProcessEnv = {}, ...flags: string[]) =>
      call(["apply", file(declaration), "--root", at, ...flags], env),
    status: () => JSON.parse(call(["status", "--root", at, "--json"]).out),
    /** Starts `run`; its stderr is in `log()`. */
    run(args: string[] = [], env: NodeJS.ProcessEnv = {}) {
      const child = spawn(process.execPath, [program.file, "run", "--node", "web-1", "--root", at, ...args], {
        env: { ...process.env, MESH_BROKER: "", MESH_CONTEXT: join(dir, "none.json"), ...env },
        stdio: ["ignore", "ignore", "pipe"],
      });
      children.push(child);
      let log = "";
      child.stderr!.on("data", (chunk) => {
        log += chunk;
      });
      const ended = new Promise<{ code: number | null; signal: string | null }>((resolve) => {
        child.on("exit", (code, signal) => resolve({ code, signal }));
      });
      return { child, ended, log: () => log };
    },
    async end() {
      for (const child of children) {
        if (child.exitCode !== null || child.signalCode !== null) continue;
        child.kill("SIGKILL");
        await new Promise((resolve) => child.once("exit", resolve));
      }
      if (existsSync(stateDir)) call(["stop-workloads", "--root", at]);
      program.remove();
      rmSync(dir, { recursive: true, force: true });
    },
  };
}

/** Every path below a folder with mode, owner, size, times and content: equal only when nothing at all was changed. */
export function treeOf(dir: string): string[] {
  if (!existsSync(dir)) return [];
  return readdirSync(dir, { recursive: true, encoding: "utf8" })
    .sort()
    .map((name) => {
      const stat = lstatSync(join(dir, name));
      const content = stat.isFile() ? digestOf(readFileSync(join(dir, name), "base64")) : "";
      return `${name} ${stat.mode.toString(8)} ${stat.uid}:${stat.gid} ${stat.ino} ${stat.ctimeMs} ${content}`;
    });
}

export const modeOf = (path: string) => (lstatSync(path).mode & 0o7777).toString(8).padStart(4, "0");
