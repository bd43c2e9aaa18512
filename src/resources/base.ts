import { z } from "zod";
import { Name } from "./values.ts";

/** Keys that every resource of a manifest may have. `id` defaults to `name`; file and directory must give it. */
export const manifestBase = {
  id: Name.optional(),
  requires: z.array(Name).default([]),
};

/**
 * Keys that every declared resource has.
 * `id` is `<module>.<id>`; `requires` are full ids on the same node; `digest` is sha256 (hex) of what makes the
 * resource itself: its own fields and, for a process, the digests of what its `restartOn` names. Never the revision.
 * `takes` are full ids of recorded resources that must be gone (stopped, or handed over) before this one is applied,
 * because this one claims their path, port, name or seat.
 */
export const declaredBase = {
  id: z.string(),
  module: z.string(),
  requires: z.array(z.string()),
  takes: z.array(z.string()),
  digest: z.string(),
};

/** Something on a node that only one resource may own. */
export interface Claim {
  space: "path" | "user" | "group" | "process" | "container" | "port";
  name: string;
}
