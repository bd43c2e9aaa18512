import { messageOf } from "../../errors.ts";
import type { ProcessSpec, RenderedCheck, Supervisor } from "../../host/supervision/types.ts";
import type { Applied, Driver, HostPlace, Observation, Removed } from "../driver.ts";
import { renderText } from "../text.ts";
import type { DeclaredCheck, DeclaredProcess } from "./schema.ts";

/** The supervisor has its own records; the host only remembers that it asked for the process, and what to reload it for. */
export interface ProcessResourceRecord {
  digest: string;
  /** Digests of what `reloadOn` names, as they were when it was started or reloaded last. */
  reloadOn: Record<string, string>;
}

/** `checkEvery` and `signal` are read anew for each process, so that they can be getters. */
export interface ProcessDriverOptions {
  place: HostPlace;
  supervisor: Supervisor;
  /** How often a service is checked, ms (`host.check` of the declaration that is applied). */
  readonly checkEvery: number;
  /** Ends waiting for a run-once (which goes on), so that the host can stop or take a newer declaration. */
  readonly signal?: AbortSignal | undefined;
}

/**
 * Real paths of `envFrom`: the declared absolute paths of KEY=VALUE files (composition put them in place of the ids).
 * Under another root than "/" accounts are not ours to take on: everything runs as the invoker.
 */
export function renderProcess(declared: DeclaredProcess, place: HostPlace, checkEvery: number): ProcessSpec {
  const text = (each: Parameters<typeof renderText>[0]) => renderText(each, place.realPath);
  const env = Object.entries(declared.env).map(([name, value]) => [name, text(value)] as const);
  return {
    id: declared.id,
    name: declared.name,
    digest: declared.digest,
    command: declared.command.map(text),
    env: Object.fromEntries(env),
    envFiles: declared.envFrom.map((file) => place.realPath(file)),
    user: place.real ? declared.user : null,
    cwd: cwdOf(declared, place),
    run: declared.run,
    schedule: declared.schedule,
    check: declared.check && renderCheck(declared.check, text),
    minUp: declared.minUp,
    checkEvery,
    reload: declared.reload,
    restart: declared.restart,
    stop: declared.stop,
    limits: declared.limits,
  };
}

/** A cwd that is written out is a declared path too; one with a reference is real once it is rendered. */
function cwdOf(declared: DeclaredProcess, place: HostPlace): string {
  if (declared.cwd === null) return place.real ? "/" : place.root;
  if (typeof declared.cwd !== "string") return renderText(declared.cwd, place.realPath);
  return declared.cwd === "/" ? (place.real ? "/" : place.root) : place.realPath(declared.cwd);
}

function renderCheck(
  check: DeclaredCheck,
  text: (each: string | DeclaredProcess["command"][0]) => string,
): RenderedCheck {
  const { timeout } = check;
  if ("http" in check) return { http: text(check.http), timeout };
  if ("tcp" in check) return { tcp: text(check.tcp), timeout };
  return { exec: check.exec.map(text), timeout };
}

export function createProcessDriver(
  options: ProcessDriverOptions,
): Driver<DeclaredProcess, ProcessResourceRecord> {
  const { place, supervisor } = options;
  const render = (declared: DeclaredProcess) => renderProcess(declared, place, options.checkEvery);
  return {
    type: "process",
    async observe(declared, records) {
      const seen = new Map<string, Observation | Error>();
      for (const each of declared)
        seen.set(each.id, observeOne(each, records.get(each.id) ?? null, render, supervisor));
      return seen;
    },
    async apply(declared, record, observation): Promise<Applied<ProcessResourceRecord>> {
      const spec = render(declared);
      const remembered: ProcessResourceRecord = {
        digest: declared.digest,
        reloadOn: reloadDigests(declared),
      };
      const note = !place.real && declared.user !== null ? `mapped to ${place.invoker.name}` : null;
      const reload =
        record !== null && supervisor.differs(spec) === "same" && observation.fields.includes("reloadOn");
      const { changed } = await supervisor.ensure(spec, options.signal);
      if (reload) await supervisor.reload(declared.id);
      return { record: remembered, changed: changed || reload, note };
    },
    async remove(id): Promise<Removed> {
      await supervisor.remove(id);
      return { kept: null, note: null };
    },
  };
}

const reloadDigests = (declared: DeclaredProcess) =>
  Object.fromEntries(declared.reloadOn.map(({ id, digest }) => [id, digest]));

function observeOne(
  declared: DeclaredProcess,
  record: ProcessResourceRecord | null,
  render: (declared: DeclaredProcess) => ProcessSpec,
  supervisor: Supervisor,
): Observation | Error {
  try {
    const state = supervisor.differs(render(declared));
    if (state === "absent") return { state, fields: [], detail: "is not started" };
    if (state === "differs") {
      const once = declared.run === "once" && record?.digest === declared.digest;
      const detail = once ? "has not succeeded yet" : "another version is to run";
      return { state, fields: [once ? "run" : "digest"], detail };
    }
    const before = record?.reloadOn ?? {};
    const moved = declared.reloadOn.filter(({ id, digest }) => record !== null && before[id] !== digest);
    if (moved.length === 0) return { state: "same", fields: [], detail: "" };
    const ids = moved.map(({ id }) => id).join(", ");
    return { state: "differs", fields: ["reloadOn"], detail: `is to be reloaded for ${ids}` };
  } catch (error) {
    return error instanceof Error ? error : new Error(messageOf(error));
  }
}
