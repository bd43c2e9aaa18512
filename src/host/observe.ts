import type { DeclarationBody } from "../declaration/schema.ts";
import type { DeclaredResource, ResourceType } from "../resources/declared.ts";
import type { Driver, Observation } from "../resources/driver.ts";
import type { Observed } from "./decide.ts";
import type { Drivers } from "./execute.ts";
import { type HostState, keyOf } from "./state.ts";
import type { Supervisor } from "./supervision/types.ts";

/** What is asked of a supervisor to see how its processes are. */
export type Statuses = Pick<Supervisor, "status" | "list">;

/** Looks at everything that is declared. Writes nothing. */
export async function observe(
  declared: DeclarationBody,
  state: HostState,
  drivers: Drivers,
  supervisor: Statuses,
): Promise<Observed> {
  const resources = new Map<string, Observation | Error>();
  for (const [type, ofType] of byType(declared.resources)) {
    const driver = drivers[type] as Driver<DeclaredResource, unknown>;
    const seen = await driver.observe(ofType, recordsOf(ofType, state));
    for (const [id, observation] of seen) resources.set(id, observation);
  }
  return {
    resources,
    failing: failingOf(declared, supervisor),
    supervised: supervisor.list().map(({ id }) => id),
  };
}

function byType(resources: readonly DeclaredResource[]): Map<ResourceType, DeclaredResource[]> {
  const groups = new Map<ResourceType, DeclaredResource[]>();
  for (const resource of resources) {
    const group = groups.get(resource.type);
    if (group) group.push(resource);
    else groups.set(resource.type, [resource]);
  }
  return groups;
}

function recordsOf(resources: readonly DeclaredResource[], state: HostState): Map<string, unknown> {
  const records = new Map<string, unknown>();
  for (const resource of resources) {
    const entry = state.entries[keyOf(resource)];
    if (entry?.type === resource.type) records.set(resource.id, entry.record);
  }
  return records;
}

function failingOf(declared: DeclarationBody, supervisor: Statuses): Map<string, string> {
  const failing = new Map<string, string>();
  for (const resource of declared.resources) {
    if (resource.type !== "process") continue;
    const status = supervisor.status(resource.id);
    if (status?.proof === "failed") failing.set(resource.id, status.error ?? `is ${status.state}`);
  }
  return failing;
}
