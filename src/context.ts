import { readFileSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { meshError } from "./errors.ts";

/**
 * DIR/context.json (mode 0600): where a mesh's parts are. `http` is the controller's base URL; `catalogue` a folder, a bare
 * repository or a URL. `publicKey` is the key hosts pin (ed25519, SPKI, base64), `keyFile` the controller's private one (PEM).
 */
export interface Context {
  mesh: string;
  store: string | null;
  broker: string | null;
  catalogue: string | null;
  ref: string;
  http: string | null;
  dir: string | null;
  publicKey: string | null;
  keyFile: string | null;
}

/** A context in which nothing is set. */
export function emptyContext(): Context {
  return {
    mesh: "mesh",
    store: null,
    broker: null,
    catalogue: null,
    ref: "main",
    http: null,
    dir: null,
    publicKey: null,
    keyFile: null,
  };
}

/** Checked by hand: a schema library would double the start-up time of `mesh status`. Unknown keys are left out. */
function parseContext(value: unknown): Context {
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw new TypeError("not an object");
  const given = value as Record<string, unknown>;
  const context = emptyContext();
  for (const key of Object.keys(context) as Array<keyof Context>) {
    const found = given[key] ?? context[key];
    if (found !== null && typeof found !== "string") throw new TypeError(`${key} is not text`);
    if (found !== null) context[key] = found;
  }
  return context;
}

export class ContextMissing extends meshError(
  "context-missing",
  "stalled",
  (f: { tried: string[] }) =>
    `no mesh found: looked at ${f.tried.join(", ")}; start one with \`mesh up\`, or name one with --context FILE or MESH_CONTEXT`,
) {}

export class ContextUnreadable extends meshError(
  "context-unreadable",
  "stalled",
  (f: { file: string; why: string }) =>
    `${f.file}: ${f.why}; expected the context.json that \`mesh up\` writes`,
) {}

export function readContext(file: string): Context {
  let text: string;
  try {
    text = readFileSync(file, "utf8");
  } catch (cause) {
    throw new ContextUnreadable(
      { file, why: (cause as NodeJS.ErrnoException).code ?? "cannot be read" },
      { cause },
    );
  }
  try {
    return parseContext(JSON.parse(text));
  } catch (cause) {
    throw new ContextUnreadable({ file, why: "is not a context" }, { cause });
  }
}

/** Where the context is: --context, MESH_CONTEXT, ./.mesh/context.json upwards, ~/.config/mesh/context.json. Null when none is there. */
export function findContext(at: { flag?: string | undefined; env?: string | undefined; cwd: string }): {
  file: string | null;
  tried: string[];
} {
  if (at.flag) return { file: resolve(at.cwd, at.flag), tried: [at.flag] };
  if (at.env) return { file: resolve(at.cwd, at.env), tried: [at.env] };
  const tried: string[] = [];
  const exists = (file: string) => {
    tried.push(file);
    try {
      readFileSync(file);
      return true;
    } catch (error) {
      return (error as NodeJS.ErrnoException).code === "EACCES";
    }
  };
  for (let dir = resolve(at.cwd); ; dir = dirname(dir)) {
    const file = join(dir, ".mesh", "context.json");
    if (exists(file)) return { file, tried };
    if (dirname(dir) === dir) break;
  }
  const home = join(homedir(), ".config", "mesh", "context.json");
  return exists(home) ? { file: home, tried } : { file: null, tried };
}
