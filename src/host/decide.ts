import type { DeclarationBody } from "../declaration/schema.ts";
import type { DeclaredResource } from "../resources/declared.ts";
import type { Observation } from "../resources/driver.ts";
import { type Attempt, type Entry, type HostState, keyOf, LEAVING, pathOfKey } from "./state.ts";

export type Why = "new" | "drift" | "changed" | "retry";

/** One thing to do. `module` is the module whose failure keeps the step from being done, and that its failure stops. */
export type Step =
  /** Take an entry away before the resource `for`, which claims what it holds. */
  | { kind: "leave"; key: string; entry: Entry; for: string; module: string }
  | {
      kind: "apply";
      key: string;
      resource: DeclaredResource;
      observation: Observation;
      why: Why;
      module: string;
    }
  /** It is as declared, and the record does not say so yet. */
  | { kind: "adopt"; key: string; resource: DeclaredResource; observation: Observation; module: string }
  /** It could not be observed, or its process is not what was declared. `counts`: it is one more try that failed. */
  | { kind: "fail"; resource: DeclaredResource; error: string; counts: boolean; module: string }
  /** It failed before and is not tried again yet. */
  | { kind: "hold"; id: string; attempt: Attempt; module: string }
  /** It holds again by itself. */
  | { kind: "settle"; id: string; module: string }
  | { kind: "prune"; key: string; entry: Entry; module: string };

export interface Observed {
  /** By id. */
  resources: ReadonlyMap<string, Observation | Error>;
  /** Processes that are as declared and failed (halted, rolled back, a run-once that ended badly), with why, by id. */
  failing: ReadonlyMap<string, string>;
  /** Ids of processes that are kept and that the record does not know. */
  supervised: readonly string[];
  /** The declaration is new: policies of processes, which are not part of their digest, are handed on. */
  fresh?: boolean;
}

/**
 * What to do so that the machine becomes as declared: in the order of the declaration, removals last. Pure.
 * Nothing to do is an empty list. `now`: wall clock, ms.
 */
export function decide(
  declared: DeclarationBody,
  recorded: HostState,
  observed: Observed,
  now: number,
): Step[] {
  const owners = new Map(declared.resources.map((resource) => [keyOf(resource), resource]));
  const ending = endingOf(recorded.entries, owners, observed.supervised);
  const gone = new Set<string>();
  const steps: Step[] = [];
  for (const resource of declared.resources) {
    for (const [key, entry] of inTheWay(resource, ending)) {
      if (gone.has(key)) continue;
      gone.add(key);
      steps.push({ kind: "leave", key, entry, for: resource.id, module: resource.module });
    }
    steps.push(...judge(resource, recorded, observed, now));
  }
  const prunes = ending
    .filter(([key]) => !owners.has(key) && !gone.has(key))
    .map(([key, entry]): Step & { kind: "prune" } => ({ kind: "prune", key, entry, module: entry.module }));
  const held = (step: Step & { kind: "prune" }) => {
    const attempt = recorded.attempts[step.entry.id];
    return attempt && attempt.notBefore > now ? attempt : null;
  };
  return [...steps, ...leavingOrder(prunes).map((step) => heldPrune(step, held(step)))];
}

/** What is recorded, or runs, and that no declared resource of its kind owns now. */
function endingOf(
  entries: HostState["entries"],
  owners: ReadonlyMap<string, DeclaredResource>,
  supervised: readonly string[],
): [string, Entry][] {
  const ending: [string, Entry][] = [];
  for (const key in entries) {
    const entry = entries[key]!;
    if (entry.left === null && owners.get(key)?.type !== entry.type) ending.push([key, entry]);
  }
  for (const id of supervised) {
    const key = `process:${id}`;
    const module = id.slice(0, id.indexOf("."));
    if (!entries[key] && !owners.has(key))
      ending.push([key, { id, module, type: "process", digest: "", made: true, record: {}, left: null }]);
  }
  return ending;
}

/** Of what ends: what `resource` takes by name, what is of another kind at its claim, a file where its folder must be. */
function inTheWay(resource: DeclaredResource, ending: readonly [string, Entry][]): [string, Entry][] {
  if (ending.length === 0) return [];
  const key = keyOf(resource);
  const path = pathOfKey(key);
  return ending.filter(([other, entry]) => {
    if (other === key || resource.takes.includes(entry.id)) return true;
    const above = pathOfKey(other);
    return entry.type === "file" && path !== null && above !== null && path.startsWith(`${above}/`);
  });
}

function judge(resource: DeclaredResource, recorded: HostState, observed: Observed, now: number): Step[] {
  const { id, module, digest } = resource;
  const key = keyOf(resource);
  const entry = recorded.entries[key];
  const mine = entry && entry.type === resource.type ? entry : undefined;
  const seen = observed.resources.get(id) ?? new Error("was not observed");
  const before = recorded.attempts[id];
  const attempt = before?.digest === digest ? before : undefined;
  const failing = observed.failing.get(id);

  if (!(seen instanceof Error) && seen.state === "same") {
    const settle: Step[] = before ? [{ kind: "settle", id, module }] : [];
    const handOn = observed.fresh === true && resource.type === "process";
    const steps =
      handOn || needsRecord(mine, resource, seen)
        ? [...settle, { kind: "adopt" as const, key, resource, observation: seen, module }]
        : settle;
    return failing === undefined
      ? steps
      : [...steps, { kind: "fail", resource, error: failing, counts: false, module }];
  }
  if (attempt && attempt.notBefore > now) return [{ kind: "hold", id, attempt, module }];
  if (seen instanceof Error) return [{ kind: "fail", resource, error: seen.message, counts: true, module }];
  return [{ kind: "apply", key, resource, observation: seen, why: whyOf(mine, resource, attempt), module }];
}

function needsRecord(entry: Entry | undefined, resource: DeclaredResource, seen: Observation): boolean {
  if (seen.kept !== undefined) return false;
  return (
    !entry ||
    entry.id !== resource.id ||
    entry.module !== resource.module ||
    entry.digest !== resource.digest ||
    entry.left !== null
  );
}

function whyOf(entry: Entry | undefined, resource: DeclaredResource, attempt: Attempt | undefined): Why {
  if (attempt) return "retry";
  if (!entry || entry.left !== null) return "new";
  return entry.digest === resource.digest ? "drift" : "changed";
}

/** What runs first, then files, then folders from the deepest up, then accounts; the last made of a kind goes first. */
function leavingOrder(prunes: (Step & { kind: "prune" })[]): (Step & { kind: "prune" })[] {
  const depth = (key: string) => (pathOfKey(key) ?? "").split("/").length;
  return prunes
    .map((step, index) => ({ step, index }))
    .sort(
      (a, b) =>
        LEAVING.indexOf(a.step.entry.type) - LEAVING.indexOf(b.step.entry.type) ||
        depth(b.step.key) - depth(a.step.key) ||
        b.index - a.index,
    )
    .map(({ step }) => step);
}

/** A removal that failed waits for its next try; it keeps no module from anything. */
function heldPrune(step: Step & { kind: "prune" }, attempt: Attempt | null): Step {
  return attempt ? { kind: "hold", id: step.entry.id, attempt, module: "" } : step;
}

export interface Difference {
  id: string;
  change: string;
  detail: string;
}

/** The steps as differences for people: what would change. */
export function differencesOf(steps: readonly Step[]): Difference[] {
  return steps.map(differenceOf).filter((difference) => difference !== null);
}

function differenceOf(step: Step): Difference | null {
  switch (step.kind) {
    case "leave":
      return { id: step.entry.id, change: "remove", detail: `makes room for ${step.for}` };
    case "prune":
      return { id: step.entry.id, change: "remove", detail: "no longer declared" };
    case "apply": {
      const change = step.observation.state === "absent" ? "add" : "update";
      return { id: step.resource.id, change, detail: step.observation.detail };
    }
    case "fail":
      return { id: step.resource.id, change: "error", detail: step.error };
    case "hold":
      return { id: step.id, change: "error", detail: step.attempt.error };
    case "adopt":
    case "settle":
      return null;
  }
}
