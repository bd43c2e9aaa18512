import type { DeclarationBody } from "../declaration/schema.ts";
import { messageOf } from "../errors.ts";
import type { HostEvent } from "../report/schema.ts";
import type { DeclaredResource, ResourceType } from "../resources/declared.ts";
import type { Driver, HostPlace } from "../resources/driver.ts";
import type { Step } from "./decide.ts";
import { type Entry, type HostState, pathOfKey } from "./state.ts";

export type Drivers = { [T in ResourceType]: Driver<Extract<DeclaredResource, { type: T }>, unknown> };

/** What became of one resource in a pass. Without one it was as declared. */
export interface Result {
  state: "changed" | "failed" | "waiting" | "skipped" | "kept";
  error: string | null;
  note: string | null;
}

export interface Pass {
  /** By resource id. */
  results: Map<string, Result>;
  /** How many things of the machine were changed. */
  changed: number;
  /** False when it was left at a safe point, since there is something newer to do. */
  finished: boolean;
}

export interface Execution {
  declared: DeclarationBody;
  revision: string;
  state: HostState;
  drivers: Drivers;
  place: HostPlace;
  now: () => number;
  /** Puts `state` on disk. */
  save(): void;
  fault(point: string): void;
  /** Something newer waits, or the host ends: the pass ends at the next safe point. */
  interrupted(): boolean;
  event(kind: HostEvent["kind"], resource: string | null, detail: string): void;
  /** Empties a folder made on the way, when it is empty. */
  removeFolder(real: string): Promise<"removed" | "absent" | "not-empty">;
}

/** Three tries before a failure counts. */
export const TRIES = 3;
const FIRST_BACKOFF = 5_000;
const LONGEST_BACKOFF = 300_000;

export const backoffOf = (tries: number) => Math.min(FIRST_BACKOFF * 2 ** (tries - 1), LONGEST_BACKOFF);

interface Context extends Execution {
  pass: Pass;
  /** Modules in which something failed or was skipped in this pass, with the cause. */
  failed: Map<string, string>;
  dirty: boolean;
}

type Executors = {
  [K in Step["kind"]]: (step: Extract<Step, { kind: K }>, context: Context) => void | Promise<void>;
};

const executors: Executors = {
  apply: async (step, context) => applyOne(step, context),
  adopt: async (step, context) => applyOne(step, context),
  leave: async ({ key, entry, for: taker, module }, context) => {
    try {
      await takeAway(key, entry, context);
    } catch (error) {
      const message = `${entry.id} could not make room: ${messageOf(error)}`;
      const resource = context.declared.resources.find(({ id }) => id === taker);
      if (resource) failedOnce(resource, message, context);
      context.failed.set(module, `${taker} failed: ${message}`);
    }
  },
  prune: async ({ key, entry }, context) => {
    try {
      await takeAway(key, entry, context);
    } catch (error) {
      const message = `could not be removed: ${messageOf(error)}`;
      triedAgain(entry.id, entry.digest, message, context);
    }
  },
  fail: ({ resource, error, counts, module }, context) => {
    if (counts) return failedOnce(resource, error, context);
    context.pass.results.set(resource.id, { state: "failed", error, note: null });
    context.failed.set(module, `${resource.id} failed: ${error}`);
  },
  hold: ({ id, attempt, module }, context) => {
    const state = attempt.tries >= TRIES ? "failed" : "waiting";
    context.pass.results.set(id, { state, error: attempt.error, note: null });
    if (module !== "") context.failed.set(module, `${id} failed: ${attempt.error}`);
  },
  settle: ({ id }, context) => {
    delete context.state.attempts[id];
    context.dirty = true;
  },
};

/** Does the steps in order. A failure stays in its module; between two steps the pass can end early. */
export async function execute(steps: readonly Step[], execution: Execution): Promise<Pass> {
  const pass: Pass = { results: new Map(), changed: 0, finished: true };
  const context: Context = { ...execution, pass, failed: new Map(), dirty: false };
  intend(steps, context);
  let module: string | null = null;
  for (const step of steps) {
    if (context.interrupted()) {
      pass.finished = false;
      break;
    }
    if (module !== step.module) saveIfDirty(context);
    module = step.module;
    const cause = blockedBy(step.module, context);
    if (cause !== null && step.kind !== "settle") skip(step, cause, context);
    else await (executors[step.kind] as (s: Step, c: Context) => void | Promise<void>)(step, context);
  }
  if (pass.finished) await sweepFolders(steps, context);
  saveIfDirty(context);
  return pass;
}

/** What is about to be made is on disk first: after a crash, what is there by then was made here. */
function intend(steps: readonly Step[], context: Context): void {
  const { state } = context;
  let first = false;
  for (const step of steps) {
    if (step.kind !== "apply" || step.resource.type === "process") continue;
    const intent = step.observation.state === "absent" && !state.entries[step.key] ? "make" : "write";
    if (state.intents[step.key] === intent || state.intents[step.key] === "make") continue;
    state.intents[step.key] = intent;
    first = true;
  }
  if (first) context.save();
}

function saveIfDirty(context: Context): void {
  if (!context.dirty) return;
  context.save();
  context.dirty = false;
}

/** The cause why nothing more is done in a module: itself, or one that it requires. */
function blockedBy(module: string, { declared, failed }: Context): string | null {
  const own = failed.get(module);
  if (own !== undefined) return own;
  for (const required of declared.modules.find(({ name }) => name === module)?.requires ?? []) {
    const cause = failed.get(required);
    if (cause !== undefined) {
      failed.set(module, cause);
      return cause;
    }
  }
  return null;
}

function skip(step: Step, cause: string, { pass }: Context): void {
  // What stays for now because its module failed is still there, and the next pass asks again.
  if (step.kind === "prune" || step.kind === "leave" || step.kind === "settle" || step.kind === "adopt")
    return;
  const id = step.kind === "hold" ? step.id : step.resource.id;
  if (!pass.results.has(id)) pass.results.set(id, { state: "skipped", error: cause, note: null });
}

async function applyOne(step: Extract<Step, { kind: "apply" | "adopt" }>, context: Context): Promise<void> {
  const { resource, key, observation } = step;
  const { state, pass } = context;
  const entry = state.entries[key];
  const mine = entry?.type === resource.type ? entry : undefined;
  const driver = context.drivers[resource.type] as Driver<DeclaredResource, unknown>;
  try {
    const applied = await driver.apply(resource, mine?.record ?? null, observation);
    const made = mine?.made === true || observation.state === "absent" || state.intents[key] === "make";
    const { id, module, type, digest } = resource;
    state.entries[key] = { id, module, type, digest, made, record: applied.record, left: null };
    rememberFolders(applied.record, context);
    delete state.intents[key];
    delete state.attempts[id];
    context.dirty = true;
    if (applied.changed) {
      pass.changed += 1;
      const drift = step.kind === "apply" && step.why === "drift";
      const note = applied.note ? `; ${applied.note}` : "";
      context.event(
        drift ? "drift" : "changed",
        id,
        `${observation.state === "absent" ? "made" : observation.detail || "applied"}${note}`,
      );
    }
    if (applied.changed || applied.kept || applied.note)
      pass.results.set(id, {
        state: applied.kept ? "kept" : "changed",
        error: null,
        note: applied.note ?? null,
      });
  } catch (error) {
    // Waiting for a run-once was broken off: it goes on, and has not failed.
    if (resource.type === "process" && context.interrupted()) return;
    failedOnce(resource, messageOf(error), context);
  }
}

function failedOnce(resource: DeclaredResource, error: string, context: Context): void {
  triedAgain(resource.id, resource.digest, error, context);
  context.failed.set(resource.module, `${resource.id} failed: ${error}`);
}

/** Counts one more failed try, and says when the next may be. */
function triedAgain(id: string, digest: string, error: string, context: Context): void {
  const before = context.state.attempts[id];
  const tries = (before?.digest === digest ? before.tries : 0) + 1;
  context.state.attempts[id] = { digest, tries, error, notBefore: context.now() + backoffOf(tries) };
  context.dirty = true;
  context.pass.results.set(id, { state: tries >= TRIES ? "failed" : "waiting", error, note: null });
  context.event("failed", id, `try ${tries}: ${error}`);
}

/** Removes what an entry stands for, or says why it stays. Accounts and folders that were there before are never removed. */
async function takeAway(key: string, entry: Entry, context: Context): Promise<void> {
  const { state, pass } = context;
  const asks = entry.made || entry.type === "file" || entry.type === "process";
  const driver = context.drivers[entry.type] as Driver<DeclaredResource, unknown>;
  const removed = asks
    ? await driver.remove(entry.id, entry.record)
    : { kept: `${key.replace(":", " ")} was there before and stays`, note: null };
  const note = removed.kept ?? removed.note;
  // What stays is listed for as long as this declaration is in force, and remembered in case it is declared again.
  if (note !== null) {
    const made = entry.made && removed.kept !== null;
    state.entries[key] = { ...entry, made, left: { note, revision: context.revision } };
  } else delete state.entries[key];
  delete state.attempts[entry.id];
  delete state.intents[key];
  context.dirty = true;
  if (removed.kept !== null) return context.event("note", entry.id, `kept: ${removed.kept}`);
  pass.changed += 1;
  context.event("removed", entry.id, removed.note ?? "no longer declared");
}

function rememberFolders(record: unknown, { state }: Context): void {
  const parents = (record as { parents?: unknown } | null)?.parents;
  if (!Array.isArray(parents)) return;
  for (const parent of parents) if (!state.parents.includes(parent)) state.parents.push(parent);
}

/** Folders that were made on the way to a path go with the last thing below them. */
async function sweepFolders(steps: readonly Step[], context: Context): Promise<void> {
  const { state, place } = context;
  if (state.parents.length === 0 || !steps.some(({ kind }) => kind === "prune" || kind === "leave")) return;
  const claimed = new Set(Object.keys(state.entries).map((key) => place.realPath(pathOfKey(key) ?? "")));
  for (const folder of [...state.parents].sort((a, b) => b.length - a.length)) {
    if (claimed.has(folder)) continue;
    const outcome = await context.removeFolder(folder).catch(() => "not-empty" as const);
    if (outcome === "not-empty") continue;
    state.parents = state.parents.filter((other) => other !== folder);
    context.dirty = true;
  }
}
