import { createHash } from "node:crypto";
import type { SentView } from "../composition/view.ts";
import type { Db, Tx } from "../io/postgres.ts";
import { joined, storableJson } from "./text.ts";

/** What nodes were sent, kept by digest and outside the plan's lock: the transaction of a merge only points to them. */
const AT_ONCE = 200;

/** Keeps views and returns the digest of each, in the order given. Repeating one changes nothing. */
export async function keepViews(db: Db, views: readonly SentView[]): Promise<string[]> {
  const digests: string[] = [];
  for (let from = 0; from < views.length; from += AT_ONCE) {
    const chunk = views.slice(from, from + AT_ONCE);
    const texts = chunk.map((view) => storableJson(view));
    const ids = texts.map((text) => createHash("sha256").update(text).digest("hex"));
    digests.push(...ids);
    await db.query(
      `INSERT INTO mesh.views (digest, view, trees)
       SELECT DISTINCT ON (digest) digest, view, string_to_array(trees, ' ')
       FROM unnest($1::text[], string_to_array($2, chr(1)), $3::text[]) AS i(digest, view, trees) ORDER BY digest
       ON CONFLICT (digest) DO UPDATE SET kept_at = now()`,
      [ids, joined(texts), chunk.map(({ modules }) => modules.map(({ tree }) => tree).join(" "))],
    );
  }
  return digests;
}

export async function readViews(db: Db, digests: readonly string[]): Promise<Map<string, SentView>> {
  if (digests.length === 0) return new Map();
  const rows = await db.query<{ digest: string; view: string }>(
    "SELECT digest, view FROM mesh.views WHERE digest = ANY($1)",
    [digests],
  );
  return new Map(rows.map(({ digest, view }) => [digest, JSON.parse(view) as SentView]));
}

/** Collects views that no node was sent and no target of the newest plan gives, an hour after they were last kept. */
export async function collectViews(tx: Tx): Promise<void> {
  await tx.query(
    `DELETE FROM mesh.views v WHERE kept_at < now() - interval '1 hour'
       AND NOT EXISTS (SELECT 1 FROM mesh.nodes n WHERE n.sent = v.digest)
       AND NOT EXISTS (SELECT 1 FROM mesh.targets t WHERE t.sent = v.digest)`,
  );
}
