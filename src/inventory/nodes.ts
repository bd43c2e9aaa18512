import type { SentView } from "../composition/view.ts";
import type { Db, Tx } from "../io/postgres.ts";
import { storableJson } from "./text.ts";

/** A node as the newest good commit declares it. */
export interface DeclaredNode {
  name: string;
  address: string;
  labels: Readonly<Record<string, string>>;
  mode: "enforce" | "observe";
  retire: boolean;
}

/** What is known of one node, declared or only heard of. Times ISO; what never was is null. */
export interface NodeRow {
  name: string;
  /** Null: it reports, but no commit ever declared it. */
  declared: boolean | null;
  address: string | null;
  labels: Record<string, string>;
  mode: "enforce" | "observe";
  retire: boolean;
  releasedAt: string | null;
  retiredAt: string | null;
  wantedSequence: number;
  publishedSequence: number;
  wantedRevision: string | null;
  wantedCommit: string | null;
  wantedTier: 0 | 1 | 2 | null;
  frozen: { reason: string; by: string; since: string } | null;
  seenAt: string | null;
  report: {
    hostStart: string;
    number: number;
    at: string;
    sequence: number;
    revision: string | null;
    commit: string | null;
    outcome: "none" | "applying" | "waiting" | "applied" | "failed" | "observed" | "refused";
    error: string | null;
    progress: string;
    handovers: unknown[];
  } | null;
}

const COLUMNS = `
  coalesce(n.name, s.node) AS name, n.declared, n.address, coalesce(n.labels, '{}') AS labels,
  coalesce(n.mode, 'enforce') AS mode, coalesce(n.retire, false) AS retire,
  n.released_at AS "releasedAt", n.retired_at AS "retiredAt",
  coalesce(n.wanted_seq, 0) AS "wantedSequence", coalesce(n.published_seq, 0) AS "publishedSequence",
  n.wanted_revision AS "wantedRevision", n.wanted_commit AS "wantedCommit", n.wanted_tier AS "wantedTier",
  f.reason, f.by, f.since, s.at AS "seenAt",
  r.host_start, r.number, r.at, r.sequence, r.revision, r.commit, r.outcome, r.error, r.progress, r.handovers`;
const TABLES = `
  mesh.nodes n FULL JOIN mesh.seen s ON s.node = n.name
  LEFT JOIN mesh.reports r ON r.node = coalesce(n.name, s.node)
  LEFT JOIN mesh.freezes f ON f.node = coalesce(n.name, s.node)`;

/** Every node, by name; or those of `names`. One statement. */
export async function readNodes(db: Db, names?: readonly string[]): Promise<NodeRow[]> {
  const where = names ? "WHERE coalesce(n.name, s.node) = ANY($1)" : "";
  const rows = await db.query<Record<string, unknown>>(
    `SELECT ${COLUMNS} FROM ${TABLES} ${where} ORDER BY 1`,
    names ? [names] : [],
  );
  return rows.map(nodeRow);
}

function nodeRow(row: Record<string, unknown>): NodeRow {
  const { reason, by, since, host_start, number, at, sequence, revision, commit, outcome, ...rest } = row;
  const { error, progress, handovers, ...node } = rest;
  return {
    ...node,
    frozen: reason === null ? null : { reason, by, since },
    report:
      outcome === null
        ? null
        : {
            hostStart: host_start,
            number,
            at,
            sequence,
            revision,
            commit,
            outcome,
            error,
            progress,
            handovers,
          },
  } as unknown as NodeRow;
}

/** The whole newest report of one node as its host sent it, and the body of what it is wanted to hold; null where there is none. */
export async function readNodeDetail(
  db: Db,
  name: string,
): Promise<{ report: unknown; body: unknown; sent: SentView | null }> {
  const rows = await db.query<{ report: string | null; body: string | null; sent: string | null }>(
    `SELECT (SELECT body FROM mesh.reports WHERE node = $1) AS report,
            (SELECT b.body FROM mesh.nodes n JOIN mesh.bodies b ON b.revision = n.wanted_revision WHERE n.name = $1) AS body,
            (SELECT v.view FROM mesh.nodes n JOIN mesh.views v ON v.digest = n.sent WHERE n.name = $1) AS sent`,
    [name],
  );
  const { report, body, sent } = rows[0]!;
  return {
    report: report && JSON.parse(report),
    body: body && JSON.parse(body),
    sent: sent && JSON.parse(sent),
  };
}

/**
 * Makes `nodes` the declared ones. A node that is no longer among them is released when it was ever sent something
 * (its last declaration stands), and forgotten when not. One that comes back keeps its sequence.
 */
export async function declareNodes(tx: Tx, nodes: readonly DeclaredNode[]): Promise<void> {
  await tx.query(
    `INSERT INTO mesh.nodes AS n (name, address, labels, mode, retire)
     SELECT name, address, labels, mode, retire FROM jsonb_to_recordset($1::jsonb)
       AS d(name text, address text, labels jsonb, mode text, retire boolean) ORDER BY name
     ON CONFLICT (name) DO UPDATE SET declared = true, address = excluded.address, labels = excluded.labels,
       mode = excluded.mode, retire = excluded.retire, released_at = NULL,
       declared_at = CASE WHEN n.declared THEN n.declared_at ELSE now() END,
       retired_at = CASE WHEN excluded.retire THEN n.retired_at END
     WHERE (n.declared, n.address, n.labels, n.mode, n.retire, n.released_at IS NULL)
       IS DISTINCT FROM (true, excluded.address, excluded.labels, excluded.mode, excluded.retire, true)`,
    [storableJson(nodes)],
  );
  const names = nodes.map(({ name }) => name);
  await tx.query("DELETE FROM mesh.nodes WHERE wanted_revision IS NULL AND NOT name = ANY($1)", [names]);
  await tx.query(
    "UPDATE mesh.nodes SET declared = false, released_at = now() WHERE declared AND NOT name = ANY($1)",
    [names],
  );
}

/** Marks nodes that are to be retired and reported their empty declaration applied. Returns their names. */
export async function markRetired(tx: Tx): Promise<string[]> {
  const rows = await tx.query<{ name: string }>(
    `UPDATE mesh.nodes n SET retired_at = now() FROM mesh.reports r, mesh.views v
     WHERE r.node = n.name AND v.digest = n.sent AND n.retire AND n.declared AND n.retired_at IS NULL
       AND cardinality(v.trees) = 0 AND r.sequence >= n.wanted_seq
       AND r.revision = n.wanted_revision AND r.outcome = 'applied' RETURNING n.name`,
  );
  return rows.map(({ name }) => name);
}
