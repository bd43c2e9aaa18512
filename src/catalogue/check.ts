import { statSync } from "node:fs";
import type { CatalogueResult } from "./catalogue.ts";
import { openCatalogue, sourceOf } from "./open.ts";

/**
 * Reads what `mesh check` is given: a folder as it is, or a commit of a repository (`GITDIR`, `GITDIR#REF`; a work tree counts
 * as a repository when a ref is named). Throws CatalogueAddress, RefMissing and GitUnreadable.
 */
export async function readForCheck(target: string): Promise<CatalogueResult> {
  const { path, ref } = splitTarget(target);
  const source = sourceOf(path, { ref: ref ?? "HEAD" });
  const reader = await openCatalogue(
    ref !== null && source.kind === "folder" ? { kind: "git", path, ref } : source,
  );
  try {
    if (reader.source.kind === "folder") return await reader.read(null);
    return await reader.read(await reader.resolveRef(ref ?? "HEAD"));
  } finally {
    await reader.close();
  }
}

/** A `#` belongs to the path where that exists with it. */
function splitTarget(target: string): { path: string; ref: string | null } {
  const at = target.lastIndexOf("#");
  if (at <= 0 || statSync(target, { throwIfNoEntry: false })) return { path: target, ref: null };
  return { path: target.slice(0, at), ref: target.slice(at + 1) || "HEAD" };
}
