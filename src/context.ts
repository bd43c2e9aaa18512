import { readFileSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { z } from "zod";
import { meshError } from "./errors.ts";

/**
 * DIR/context.json (mode 0600): where a mesh's parts are. `http` is the controller's base URL; `catalogue` a folder, a bare
 * repository or a URL. `publicKey` is the key hosts pin (ed25519, SPKI, base64), `keyFile` the controller's private one (PEM).
 */
export const Context = z.object({
  mesh: z.string().default("mesh"),
  store: z.string().nullable().default(null),
  broker: z.string().nullable().default(null),
  catalogue: z.string().nullable().default(null),
  ref: z.string().default("main"),
  http: z.string().nullable().default(null),
  dir: z.string().nullable().default(null),
  publicKey: z.string().nullable().default(null),
  keyFile: z.string().nullable().default(null),
});
export type Context = z.infer<typeof Context>;

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
    return Context.parse(JSON.parse(text));
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
