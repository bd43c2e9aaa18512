import { type DraftResource, type Kind, RANK } from "../kind.ts";
import { DeclaredDirectory, DirectoryManifest } from "./schema.ts";

export const directoryKind = {
  type: "directory",
  manifest: DirectoryManifest,
  declared: DeclaredDirectory,
  ids: (m) => [{ id: m.id, path: m.path }],
  compile: (m, scope) => {
    scope.plain(m.path, ["path"]);
    return [directoryDraft(m.id, m, m.requires, RANK.directory)];
  },
} satisfies Kind<"directory", DirectoryManifest>;

/** A directory's draft; a module's `state` is one too, with a rank of its own. */
export function directoryDraft(
  id: string,
  at: { path: string; owner?: string | undefined; group?: string | undefined; mode: string },
  requires: readonly string[],
  rank: number,
): DraftResource {
  return {
    id,
    fields: { path: at.path, owner: at.owner ?? null, group: at.group ?? null, mode: at.mode },
    requires,
    rank,
    claims: [{ space: "path", name: at.path }],
  };
}
