import type { Declaration } from "../declaration/schema.ts";
import type { HostEvent, Report, ResourceReport } from "../report/schema.ts";
import type { DeclaredResource } from "../resources/declared.ts";
import type { HostPlace } from "../resources/driver.ts";
import type { Pass, Result } from "./execute.ts";
import type { Statuses } from "./observe.ts";
import type { HostState } from "./state.ts";

/** What a host says of itself, apart from who and when it is. */
export type Account = Pick<
  Report,
  "outcome" | "error" | "revision" | "sequence" | "commit" | "resources" | "differences"
>;

export interface Situation {
  place: HostPlace;
  declaration: Declaration | null;
  state: HostState;
  /** The last pass over this declaration; null before the first one ended. */
  pass: Pass | null;
  differences: Report["differences"];
  refused: string | null;
  /** Why the host itself cannot work: its own documents cannot be written. */
  trouble: string | null;
  supervisor: Statuses;
}

/** The state of everything that is declared, and of what stayed behind, with what follows for the declaration as a whole. */
export function accountOf(situation: Situation): Account {
  const { declaration, refused } = situation;
  const resources = declaration
    ? [
        ...declaration.body.resources.map((r) => resourceReport(r, situation)),
        ...leftovers(situation, declaration),
      ]
    : [];
  return {
    outcome: outcomeOf(situation),
    error: refused ?? situation.trouble ?? firstError(resources),
    revision: declaration?.revision ?? null,
    sequence: declaration?.sequence ?? 0,
    commit: declaration?.commit ?? null,
    resources,
    differences: situation.differences,
  };
}

function resourceReport(resource: DeclaredResource, situation: Situation): ResourceReport {
  const { id, type } = resource;
  const found = situation.pass?.results.get(id);
  const result = found?.state === "failed" && holdsAgain(id, situation.supervisor) ? undefined : found;
  const base: ResourceReport = {
    id,
    type,
    state: result?.state ?? "ok",
    error: result?.error ?? null,
    note: result?.note ?? null,
    process: null,
  };
  if (type === "process") return { ...base, ...processPart(id, result, situation.supervisor) };
  if ((type === "user" || type === "group") && !situation.place.real)
    return { ...base, state: "kept", note: `mapped to ${situation.place.invoker.name}` };
  return base;
}

function processPart(id: string, result: Result | undefined, supervisor: Statuses): Partial<ResourceReport> {
  const status = supervisor.status(id);
  if (!status) return { process: null };
  const { state, pid, restarts, since, exit } = status;
  const process = { state, pid, restarts, since, exit };
  const last = status.last.length > 0 ? { last: status.last } : {};
  if (status.proof !== "failed" || result?.state === "waiting") return { process, ...last };
  return { process, ...last, state: "failed", error: status.error ?? result?.error ?? `is ${state}` };
}

/** Removals that failed, and what was deliberately left since this declaration no longer has it. */
function leftovers({ state, pass }: Situation, declaration: Declaration): ResourceReport[] {
  const declared = new Set(declaration.body.resources.map(({ id }) => id));
  const typeOf = new Map(Object.values(state.entries).map((entry) => [entry.id, entry.type as string]));
  const left = Object.values(state.entries)
    .filter((entry) => entry.left?.revision === declaration.revision && !declared.has(entry.id))
    .map(({ id, type, left }) => ({
      id,
      type,
      state: "kept" as const,
      error: null,
      note: left!.note,
      process: null,
    }));
  const failed = [...(pass?.results ?? [])]
    .filter(([id]) => !declared.has(id))
    .map(([id, result]) => ({ id, type: typeOf.get(id) ?? "process", ...result, process: null }));
  return [...left, ...failed];
}

/** What follows for the declaration as a whole. Cheap: asked at every check and every change of a process. */
export function outcomeOf(situation: Situation): Report["outcome"] {
  const { declaration, pass, refused, supervisor } = situation;
  if (refused !== null) return "refused";
  if (!declaration) return "none";
  if (situation.trouble !== null) return "failed";
  if (declaration.body.mode === "observe") return pass === null ? "applying" : "observed";
  if (pass === null || !pass.finished) return "applying";
  let proving = false;
  let waiting = false;
  for (const [id, { state }] of pass.results) {
    if (state === "failed" && !holdsAgain(id, supervisor)) return "failed";
    waiting ||= state === "waiting" || state === "skipped";
  }
  for (const { id, type } of declaration.body.resources) {
    if (type !== "process") continue;
    const proof = supervisor.status(id)?.proof;
    if (proof === "failed" && pass.results.get(id)?.state !== "waiting") return "failed";
    proving ||= proof !== "proven";
  }
  if (waiting) return "waiting";
  return proving ? "applying" : "applied";
}

/** A process that failed in the last pass and passed its check since. */
const holdsAgain = (id: string, supervisor: Statuses) => supervisor.status(id)?.proof === "proven";

function firstError(resources: readonly ResourceReport[]): string | null {
  const bad =
    resources.find(({ state }) => state === "failed") ?? resources.find(({ error }) => error !== null);
  return bad ? `${bad.id}: ${bad.error ?? bad.state}` : null;
}

/** Whether an event is told at once, or may wait for others. */
export const urgent = (event: HostEvent) => event.kind !== "drift" && event.kind !== "note";
