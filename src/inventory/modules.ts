import type { ModuleVersion, SourceFile } from "../catalogue/catalogue.ts";
import type { Db, Tx } from "../io/postgres.ts";
import { joined } from "./text.ts";

/** Keeps versions by tree id, since Git may lose them. One statement; those kept already are only marked as in use. */
export async function keepModuleVersions(db: Db, versions: Iterable<ModuleVersion>): Promise<void> {
  const list = [...new Map([...versions].map((version) => [version.tree, version])).values()];
  if (list.length === 0) return;
  list.sort((a, b) => (a.tree < b.tree ? -1 : 1));
  await db.query(
    `INSERT INTO mesh.module_versions (tree, name, manifest, sources)
     SELECT * FROM unnest($1::text[], $2::text[], string_to_array($3, chr(1)), string_to_array($4, chr(1)))
     ON CONFLICT (tree) DO UPDATE SET kept_at = now()`,
    [
      list.map(({ tree }) => tree),
      list.map(({ name }) => name),
      joined(list.map(({ manifest }) => JSON.stringify(manifest))),
      joined(list.map(({ sources }) => sourcesText(sources))),
    ],
  );
}

/** Those trees of `trees` that are kept, whole. */
export async function readModuleVersions(
  db: Db,
  trees: readonly string[],
): Promise<Map<string, ModuleVersion>> {
  if (trees.length === 0) return new Map();
  const rows = await db.query<{ tree: string; name: string; manifest: string; sources: string }>(
    "SELECT tree, name, manifest, sources FROM mesh.module_versions WHERE tree = ANY($1)",
    [trees],
  );
  return new Map(
    rows.map(({ tree, name, manifest, sources }) => [
      tree,
      { tree, name, manifest: JSON.parse(manifest), sources: sourcesOf(sources) },
    ]),
  );
}

/** Collects versions that no kept view names (collect views before), an hour after they were last kept. */
export async function collectModuleVersions(tx: Tx): Promise<void> {
  await tx.query(
    `WITH used AS (SELECT DISTINCT unnest(trees) AS tree FROM mesh.views)
     DELETE FROM mesh.module_versions v WHERE kept_at < now() - interval '1 hour'
       AND NOT EXISTS (SELECT 1 FROM used WHERE used.tree = v.tree)`,
  );
}

interface KeptSource extends Omit<SourceFile, "bytes"> {
  base64: string | null;
}

function sourcesText(sources: ReadonlyMap<string, SourceFile>): string {
  const kept = [...sources].map(([path, { bytes, ...file }]): [string, KeptSource] => [
    path,
    { ...file, base64: bytes && Buffer.from(bytes).toString("base64") },
  ]);
  return JSON.stringify(kept);
}

function sourcesOf(text: string): Map<string, SourceFile> {
  const kept: Array<[string, KeptSource]> = JSON.parse(text);
  return new Map(
    kept.map(([path, { base64, ...file }]) => [
      path,
      { ...file, bytes: base64 === null ? null : Buffer.from(base64, "base64") },
    ]),
  );
}
