import { canonicalJson } from "../declaration/canonical.ts";
import type { DeclarationBody } from "../declaration/schema.ts";
import type { DeclaredResource } from "../resources/declared.ts";

/**
 * One resource that differs. `fields` are the names of its declared fields that differ (for a restart that only what it
 * depends on causes: `restartOn`; for one that takes over another's place: `id` first), empty for add and remove.
 */
export interface Change {
  id: string;
  change: "add" | "update" | "remove" | "restart" | "reload" | "handover";
  fields: string[];
}

/** Fields that say nothing of the resource itself. */
const ORDER_ONLY = new Set(["digest", "takes", "requires", "module", "id"]);

/**
 * What applying `after` does to a node that holds `before` (null: nothing): first what changes, in order of applying, then
 * what is removed. A resource that takes an old one's place is that one changed: nothing of it counts as removed.
 */
export function diffBodies(before: DeclarationBody | null, after: DeclarationBody): Change[] {
  const old = new Map((before?.resources ?? []).map((resource) => [resource.id, resource]));
  const declared = new Set(after.resources.map((resource) => resource.id));
  const gone = new Set<string>();
  const changes: Change[] = [];
  for (const resource of after.resources) {
    const same = old.get(resource.id);
    if (same && same.type === resource.type) {
      const change = changeOf(same, resource);
      if (change) changes.push(change);
      continue;
    }
    const taken = resource.takes.map((id) => old.get(id)).filter((one) => one !== undefined);
    for (const one of taken) gone.add(one.id);
    const heir = taken.find((one) => one.type === resource.type && !declared.has(one.id));
    changes.push(heir ? inherited(heir, resource) : { id: resource.id, change: "add", fields: [] });
  }
  for (const { id } of old.values()) {
    if (!declared.has(id) && !gone.has(id)) changes.push({ id, change: "remove", fields: [] });
  }
  return changes;
}

function inherited(heir: DeclaredResource, resource: DeclaredResource): Change {
  const fields = ["id", ...differing(heir, resource)];
  const restarts = resource.type === "process" && resource.run === "service";
  return { id: resource.id, change: restarts ? "restart" : "update", fields };
}

function changeOf(before: DeclaredResource, after: DeclaredResource): Change | null {
  const fields = differing(before, after);
  if (after.type === "process" && before.digest !== after.digest) {
    const change = after.run === "service" ? "restart" : "update";
    return { id: after.id, change, fields: fields.length > 0 ? fields : ["restartOn"] };
  }
  if (fields.length === 0) return null;
  const reloads = after.type === "process" && fields.includes("reloadOn");
  return { id: after.id, change: reloads ? "reload" : "update", fields };
}

function differing(before: DeclaredResource, after: DeclaredResource): string[] {
  const one = before as unknown as Record<string, unknown>;
  const other = after as unknown as Record<string, unknown>;
  const keys = [...new Set([...Object.keys(one), ...Object.keys(other)])].sort();
  return keys.filter((key) => !ORDER_ONLY.has(key) && canonicalJson(one[key]) !== canonicalJson(other[key]));
}
