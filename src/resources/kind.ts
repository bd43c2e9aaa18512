import type { z } from "zod";
import type { Claim } from "./base.ts";
import type { Draft, Template } from "./draft.ts";

/** Restart, stop and proof policies as mesh.json gives them, complete. Milliseconds. */
export interface Policies {
  restart: { first: number; max: number; resetAfter: number; rollbackAfter: number; haltAfter: number };
  stop: { signal: string; grace: number };
  minUp: number;
  checkTimeout: number;
}

/** A path inside the resource's manifest, for problems: `["env", "PORT"]`. */
export type Field = ReadonlyArray<string | number>;

/** A file of the module as a resource's `source` names it. Sizes in bytes. */
export interface Source {
  oid: string;
  sha256: string;
  size: number;
  bytes: Buffer | null;
}

/** What a kind needs to turn its manifest into drafts. Nothing here throws: problems are raised and composing goes on. */
export interface CompileScope {
  module: string;
  policies: Policies;
  /** Text with placeholders. `where` is the field it stands in. */
  text(value: string, where: Field): Template;
  /** A field whose placeholders are not filled: raises a problem when one of the known ones is in it. */
  plain(value: string, where: Field): string;
  source(path: string, where: Field): Source | null;
  /** The declared path of a file or directory of this module, by its id. */
  pathOf(id: string, where: Field): string | null;
  /** The full id of what `restartOn` or `reloadOn` names; null (with a problem) when it is unknown. */
  reference(ref: string, where: Field): string | null;
  problem(where: Field, message: string): void;
}

/**
 * One resource before its placeholders are filled. `fields` are those of the declared schema without the common ones.
 * `identity` names the fields that the digest holds (all when absent). `requires` are ids of the module, `restartOn` full ids.
 */
export interface DraftResource {
  id: string;
  fields: Readonly<Record<string, Draft>>;
  identity?: readonly string[];
  requires: readonly string[];
  restartOn?: readonly string[];
  /** Order within a module; see RANK. */
  rank: number;
  claims: readonly Claim[];
}

/** Order of a module's resources: groups and users, state, directories, files, run-once steps, services. */
export const RANK = { group: 0, user: 1, state: 2, directory: 3, file: 4, once: 5, service: 6 } as const;

/** The pure side of one kind: its schemas, the ids it will make, and the way from manifest to drafts. */
export interface Kind<T extends string, M extends { type: T }> {
  readonly type: T;
  readonly manifest: z.ZodType<M>;
  readonly declared: z.ZodType;
  /** Every id that `compile` makes from this manifest, the resource's own last, with its path where it has one. */
  ids(manifest: M): Array<{ id: string; path?: string }>;
  compile(manifest: M, scope: CompileScope): DraftResource[];
}
