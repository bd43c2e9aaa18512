import { Cron } from "croner";
import { messageOf } from "../errors.ts";
import { AccountName, NAME } from "../resources/values.ts";
import { suggestion } from "./nearest.ts";
import type { Document, FileProblem, JsonPath } from "./parse.ts";
import { describe } from "./problems.ts";
import { entriesOf, isObject, itemsOf, namesOf } from "./raw.ts";
import { fitsSetting, SETTING_WORDS, settingType } from "./settings.ts";

interface Found {
  at: JsonPath;
  id: string;
  resource: Record<string, unknown>;
}

/** What can be said of a manifest by itself, beside its schema. It works on any JSON, so that all problems show at once. */
export function checkModule(document: Document, folder: string): FileProblem[] {
  const { value } = document;
  if (!isObject(value)) return [];
  const problems: FileProblem[] = [];
  if (typeof value.name === "string" && value.name !== folder)
    problems.push(
      document.problem(
        ["name"],
        `found ${describe(value.name)}; must be the name of its folder, ${describe(folder)}`,
      ),
    );
  problems.push(...checkPorts(document, value), ...checkSettings(document, value));
  const { found, problems: idProblems } = collectIds(document, value);
  problems.push(...idProblems);
  const known = new Map(found.map((f) => [f.id, f]));
  if (isObject(value.state))
    known.set("state", { at: ["state"], id: "state", resource: { type: "directory" } });
  for (const one of found) problems.push(...checkResource(document, one, known, folder));
  return problems;
}

/** The ids that others may refer to, of a manifest of any shape. */
export function idsOf(manifest: unknown): string[] {
  if (!isObject(manifest)) return [];
  const ids = itemsOf(manifest.resources).flatMap((r) => (isObject(r) ? [idOf(r)] : []));
  return [...ids, isObject(manifest.state) ? "state" : null].filter((id) => id !== null);
}

function idOf(resource: Record<string, unknown>): string | null {
  if (typeof resource.id === "string") return resource.id;
  return resource.id === undefined && typeof resource.name === "string" ? resource.name : null;
}

/** Its own rule says more than that it cannot serve as id. */
function isBadAccount({ type, name }: Record<string, unknown>): boolean {
  return (type === "user" || type === "group") && !AccountName.safeParse(name).success;
}

function collectIds(document: Document, manifest: Record<string, unknown>) {
  const problems: FileProblem[] = [];
  const found: Found[] = [];
  const owners = new Map<string, string>();
  if (isObject(manifest.state)) owners.set("state", "the module's state");
  const claim = (id: string, owner: string, at: JsonPath) => {
    const first = owners.get(id);
    if (first)
      problems.push(
        document.problem(
          at,
          `the id ${describe(id)} is that of ${first} already; give one of them another "id"`,
        ),
      );
    else owners.set(id, owner);
  };
  itemsOf(manifest.resources).forEach((resource, i) => {
    if (!isObject(resource)) return;
    const at = ["resources", i];
    const id = idOf(resource);
    if (id === null) return;
    found.push({ at, id, resource });
    const place = [...at, resource.id === undefined ? "name" : "id"];
    if (resource.id === undefined && !NAME.test(id) && !isBadAccount(resource))
      problems.push(
        document.problem(
          place,
          `the name ${describe(id)} cannot serve as id; give an "id" of lower-case letters, digits and inner hyphens`,
        ),
      );
    claim(id, `resources[${i}] (${describe(resource.type)})`, place);
    if (resource.prepares === true) claim(`${id}-prepare`, `the preparation of resources[${i}]`, place);
  });
  return { found, problems };
}

function checkPorts(document: Document, manifest: Record<string, unknown>): FileProblem[] {
  const ports = new Set(entriesOf(manifest.ports).map(([name]) => name));
  return entriesOf(manifest.seats).flatMap(([seat, value]) => {
    if (!isObject(value) || typeof value.port !== "string" || ports.has(value.port)) return [];
    return [
      document.problem(
        ["seats", seat, "port"],
        `unknown port ${describe(value.port)}${suggestion(value.port, ports, "ports of the module")}`,
      ),
    ];
  });
}

function checkSettings(document: Document, manifest: Record<string, unknown>): FileProblem[] {
  return entriesOf(manifest.settings).flatMap(([key, declared]) => {
    const type = settingType(declared);
    if (!type || !isObject(declared) || declared.default === undefined || fitsSetting(type, declared.default))
      return [];
    const message = `found ${describe(declared.default)}; must be ${SETTING_WORDS[type]}, as its type says`;
    return [document.problem(["settings", key, "default"], message)];
  });
}

function checkResource(
  document: Document,
  { at, id, resource }: Found,
  known: ReadonlyMap<string, Found>,
  folder: string,
): FileProblem[] {
  const problems: FileProblem[] = [];
  const mustBeKnown = (key: string, i: number, ref: string, full: string) => {
    if (ref === id)
      problems.push(document.problem([...at, key, i], `${describe(full)} is the resource itself`));
    else if (!known.has(ref))
      problems.push(
        document.problem(
          [...at, key, i],
          `unknown id ${describe(full)}${suggestion(ref, known.keys(), "ids of the module")}`,
        ),
      );
  };
  for (const [i, ref] of namesOf(resource.requires)) mustBeKnown("requires", i, ref, ref);
  if (resource.type === "file") problems.push(...checkFile(document, at, resource));
  if (resource.type !== "process") return problems;
  for (const key of ["restartOn", "reloadOn"])
    for (const [i, ref] of namesOf(resource[key])) {
      const [first, second] = ref.split(".");
      if (ref.startsWith("secret:")) continue;
      if (second === undefined) mustBeKnown(key, i, ref, ref);
      else if (first === folder) mustBeKnown(key, i, second, ref);
    }
  for (const [i, ref] of namesOf(resource.envFrom)) {
    mustBeKnown("envFrom", i, ref, ref);
    const target = known.get(ref);
    if (target && target.resource.type !== "file")
      problems.push(
        document.problem(
          [...at, "envFrom", i],
          `${describe(ref)} is a ${target.resource.type}; must be a file of KEY=VALUE lines`,
        ),
      );
  }
  return [...problems, ...checkSchedule(document, at, resource)];
}

function checkSchedule(document: Document, at: JsonPath, r: Record<string, unknown>): FileProblem[] {
  if (typeof r.schedule !== "string") return [];
  const problems: FileProblem[] = [];
  if (r.run !== "once")
    problems.push(document.problem([...at, "schedule"], 'schedule goes with "run": "once" only', "key"));
  const why = scheduleProblem(r.schedule);
  if (why) problems.push(document.problem([...at, "schedule"], `found ${describe(r.schedule)}; ${why}`));
  return problems;
}

function scheduleProblem(schedule: string): string | null {
  const shape = 'must be five fields (minute hour day month weekday) such as "*/5 * * * *"';
  if (schedule.trim().split(/\s+/).length !== 5) return shape;
  try {
    const job = new Cron(schedule, { paused: true });
    return job.nextRun() === null ? "never comes due" : null;
  } catch (error) {
    return `${shape}: ${messageOf(error)}`;
  }
}

function checkFile(document: Document, at: JsonPath, r: Record<string, unknown>): FileProblem[] {
  const given = ["content", "source", "secret"].filter((key) => r[key] !== undefined);
  const problems: FileProblem[] = [];
  if (given.length === 0)
    problems.push(document.problem(at, "a file must have one of content, source, secret; found none"));
  if (given.length > 1)
    problems.push(
      document.problem(
        [...at, given[1]!],
        `a file must have one of content, source, secret; found ${given.join(" and ")}`,
        "key",
      ),
    );
  if (typeof r.source === "string") {
    const why = sourcePathProblem(r.source);
    if (why) problems.push(document.problem([...at, "source"], `found ${describe(r.source)}; ${why}`));
  }
  return problems;
}

/** Why a `source` cannot be a path inside its module; null when it can. */
export function sourcePathProblem(source: string): string | null {
  const parts = source.split("/");
  if (source.startsWith("/")) return "must be a path inside the module, not an absolute one";
  if (parts.includes("..")) return 'must be a path inside the module, without ".."';
  if (parts.some((p) => p === "" || p === "."))
    return 'must be a plain path inside the module, without "." or empty parts';
  return null;
}
