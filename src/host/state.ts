import { join } from "node:path";
import { z } from "zod";
import { Declaration } from "../declaration/schema.ts";
import { type Lock, makePrivateDir, readIfThere, setAside, takeLock, writeDurably } from "../io/durable.ts";
import type { Fault } from "../io/faults.ts";
import type { DeclaredResource, ResourceType } from "../resources/declared.ts";

/**
 * What the host remembers of one thing on the machine. `made`: this host brought it into being, so it may take it away;
 * otherwise it was there before and was adopted. `record` is its driver's. `left`: no longer declared and deliberately
 * left, with why; remembered in case it is declared again.
 */
export const Entry = z.strictObject({
  id: z.string(),
  module: z.string(),
  type: z.enum(["group", "user", "directory", "file", "process"]),
  digest: z.string(),
  made: z.boolean(),
  record: z.unknown(),
  left: z.strictObject({ note: z.string(), revision: z.string() }).nullable(),
});
export type Entry = z.infer<typeof Entry>;

/** A resource that could not be applied. `notBefore`: wall clock, ms. */
export const Attempt = z.strictObject({
  digest: z.string(),
  tries: z.int(),
  error: z.string(),
  notBefore: z.number(),
});
export type Attempt = z.infer<typeof Attempt>;

/**
 * The record of one host. `entries` by claim (`path:/etc/x`, `user:web`, `process:web.server`), so that ownership follows
 * the thing and not the id. `intents` are claims that are being made now: after a crash they count as made.
 * `parents` are real paths of folders that were made on the way.
 */
export const HostState = z.strictObject({
  format: z.literal(1),
  entries: z.record(z.string(), Entry),
  intents: z.record(z.string(), z.enum(["make", "write"])),
  attempts: z.record(z.string(), Attempt),
  parents: z.array(z.string()),
});
export type HostState = z.infer<typeof HostState>;

const Pinned = z.strictObject({ publicKey: z.string() });

export interface Loaded {
  state: HostState;
  declaration: Declaration | null;
  pinned: string | null;
  /** One line for each document that could not be used and was set aside. */
  aside: string[];
  /** The record is incomplete: what the last declaration made must be found again by looking. */
  rebuild: boolean;
}

export interface StateStore {
  load(): Loaded;
  save(state: HostState): void;
  saveDeclaration(declaration: Declaration): void;
  pin(publicKey: string): void;
}

/** The claim a resource has on its machine. */
export function keyOf(resource: DeclaredResource): string {
  switch (resource.type) {
    case "file":
    case "directory":
      return `path:${resource.path}`;
    case "user":
    case "group":
      return `${resource.type}:${resource.name}`;
    case "process":
      return `process:${resource.id}`;
  }
}

/** The declared path of an entry, null for what has none. */
export const pathOfKey = (key: string) => (key.startsWith("path:") ? key.slice(5) : null);

export const emptyState = (): HostState => ({
  format: 1,
  entries: {},
  intents: {},
  attempts: {},
  parents: [],
});

/** Order in which kinds leave: what runs first, what others belong to last. */
export const LEAVING: readonly ResourceType[] = ["process", "file", "directory", "user", "group"];

function parseJson<T>(text: string | null, schema: z.ZodType<T>): T | null {
  if (text === null) return null;
  try {
    return schema.parse(JSON.parse(text));
  } catch {
    return null;
  }
}

/**
 * Reads one document; a torn, empty or foreign one is set aside (when `keep`), and the copy before it is used.
 */
function readDocument<T>(
  dir: string,
  name: string,
  schema: z.ZodType<T>,
  aside: string[],
  readOnly: boolean,
) {
  const file = join(dir, name);
  const text = readIfThere(file);
  const found = parseJson(text, schema);
  const previous = parseJson(readIfThere(`${file}.prev`), schema);
  if (found !== null) return { value: found, damaged: false };
  if (text === null) return { value: previous, damaged: previous !== null };
  const kept = readOnly ? file : setAside(file);
  const instead = previous === null ? "rebuilt from the last declaration" : "the copy before it is used";
  aside.push(`${name} was not usable (${text.length} characters), kept as ${kept}; ${instead}`);
  return { value: previous, damaged: true };
}

/** The host's own documents. `readOnly` neither makes the folder nor moves anything. */
export function openStore(dir: string, fault: Fault, readOnly = false): StateStore {
  if (!readOnly) makePrivateDir(dir);
  return {
    load() {
      const aside: string[] = [];
      const state = readDocument(dir, "state.json", HostState, aside, readOnly);
      const declaration = readDocument(dir, "declaration.json", Declaration, aside, readOnly);
      const pinned = readDocument(dir, "pinned.json", Pinned, aside, readOnly);
      return {
        state: state.value ?? emptyState(),
        declaration: declaration.value,
        pinned: pinned.value?.publicKey ?? null,
        aside,
        rebuild: state.damaged || (state.value === null && declaration.value !== null),
      };
    },
    save(state) {
      fault("state-before-save");
      writeDurably(join(dir, "state.json"), JSON.stringify(state), { previous: true });
      fault("state-after-save");
    },
    saveDeclaration(declaration) {
      writeDurably(join(dir, "declaration.json"), JSON.stringify(declaration), { previous: true });
    },
    pin(publicKey) {
      writeDurably(join(dir, "pinned.json"), JSON.stringify({ publicKey }), { previous: true });
    },
  };
}

export function lockState(dir: string): Lock {
  makePrivateDir(dir);
  return takeLock(dir);
}
