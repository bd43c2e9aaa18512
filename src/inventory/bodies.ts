import type { DeclarationBody } from "../declaration/schema.ts";
import type { Db, Tx } from "../io/postgres.ts";
import { joined } from "./text.ts";

/** A declaration's body as text (the canonical JSON whose sha256 is `revision`). */
export interface KeptBody {
  revision: string;
  node: string;
  body: string;
}

/**
 * Keeps bodies by revision, before the plan that gives them is made: outside the plan's lock, in any number of calls.
 * Repeating one changes nothing. One statement a call; about 1,000 bodies a call keep memory flat.
 */
export async function keepBodies(db: Db, bodies: readonly KeptBody[]): Promise<void> {
  if (bodies.length === 0) return;
  const unique = [...new Map(bodies.map((body) => [body.revision, body])).values()];
  unique.sort((a, b) => (a.revision < b.revision ? -1 : 1));
  await db.query(
    `INSERT INTO mesh.bodies (revision, node, body) SELECT * FROM unnest($1::text[], $2::text[], string_to_array($3, chr(1)))
     ON CONFLICT (revision) DO UPDATE SET kept_at = now()`,
    [unique.map((b) => b.revision), unique.map((b) => b.node), joined(unique.map((b) => b.body))],
  );
}

/** Bodies by node, each parsed when it is asked for: ten thousand parsed ones take a gigabyte, and seconds at a stretch. */
export interface WantedBodies {
  readonly size: number;
  get(node: string): DeclarationBody | undefined;
}

/** What each of `nodes` (default: all) is wanted to hold, by node. Nodes that were never sent anything are absent. */
export async function readWantedBodies(db: Db, nodes?: readonly string[]): Promise<WantedBodies> {
  const rows = await db.query<{ name: string; body: string }>(
    `SELECT n.name, b.body FROM mesh.nodes n JOIN mesh.bodies b ON b.revision = n.wanted_revision
     ${nodes ? "WHERE n.name = ANY($1)" : ""}`,
    nodes ? [nodes] : [],
  );
  const texts = new Map(rows.map(({ name, body }) => [name, body]));
  const parsed = new Map<string, WeakRef<DeclarationBody>>();
  return {
    size: texts.size,
    get(node) {
      const held = parsed.get(node)?.deref();
      const text = texts.get(node);
      if (held || text === undefined) return held;
      const body = JSON.parse(text) as DeclarationBody;
      parsed.set(node, new WeakRef(body));
      return body;
    },
  };
}

/** Collects bodies that no node is wanted to hold and no target of the newest plan gives, an hour after they were last kept. */
export async function collectBodies(tx: Tx): Promise<void> {
  await tx.query(
    `DELETE FROM mesh.bodies b WHERE kept_at < now() - interval '1 hour'
       AND NOT EXISTS (SELECT 1 FROM mesh.nodes n WHERE n.wanted_revision = b.revision)
       AND NOT EXISTS (SELECT 1 FROM mesh.targets t
         WHERE t.plan = (SELECT max(id) FROM mesh.plans) AND t.revision = b.revision)`,
  );
}
