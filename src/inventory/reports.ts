import { messageOf } from "../errors.ts";
import { type Db, StoreFailed, type Tx } from "../io/postgres.ts";
import { type Fold, type FoldedEvent, fold, progressDigest } from "../report/fold.ts";
import { Report } from "../report/schema.ts";
import { type Position, savePosition } from "./positions.ts";
import { joined, storable, storableJson } from "./text.ts";

/** One message of a stream, parsed as JSON if it was any, else its text. `at`: when the broker took it (ms since 1970). */
export interface ReportMessage {
  seq: number;
  data: unknown;
  at?: number;
}

/** A node whose newest report is another than before. */
export interface FoldedNode {
  node: string;
  sequence: number;
  outcome: string;
  /** Null: its first report. */
  outcomeBefore: string | null;
  /** Something that a plan looks at moved. */
  progressed: boolean;
}

export interface FoldResult {
  /** Those stored: duplicates and older ones are not among them. */
  folded: FoldedNode[];
  /** Plan work has something new to look at. */
  matters: boolean;
  /** Set aside in `mesh.rejected`. */
  rejected: number;
  /** Nodes whose host held a higher sequence than the store knew. */
  raised: string[];
}

/**
 * Folds a batch in a few statements, whatever its size, and saves `position` with it (in a transaction of `withEpoch`).
 * Folding a message again changes nothing. One that is no report, or that cannot be stored, is set aside with the reason and
 * holds up nothing.
 */
export async function foldReports(
  tx: Tx,
  messages: readonly ReportMessage[],
  position: Position,
): Promise<FoldResult> {
  const { good, bad } = parse(messages);
  let folded: FoldedNode[] = [];
  let raised: string[] = [];
  const store = async (batch: readonly GoodMessage[]) => {
    const outcome = await storeBatch(tx, batch);
    folded = [...folded, ...outcome.folded];
    raised = [...raised, ...outcome.raised];
  };
  try {
    await tx.attempt(() => store(good));
  } catch (error) {
    if (!(error instanceof StoreFailed)) throw error;
    for (const message of good) {
      await tx
        .attempt(() => store([message]))
        .catch((cause) => {
          if (!(cause instanceof StoreFailed)) throw cause;
          bad.push({
            seq: message.seq,
            node: message.report.node,
            reason: messageOf(cause),
            data: message.report,
          });
        });
    }
  }
  await setAside(tx, position.stream, bad);
  await savePosition(tx, position);
  return { folded, matters: folded.some(({ progressed }) => progressed), rejected: bad.length, raised };
}

interface GoodMessage {
  seq: number;
  at: number | undefined;
  report: Report;
}
interface BadMessage {
  seq: number;
  node: string | null;
  reason: string;
  data: unknown;
}

function parse(messages: readonly ReportMessage[]): { good: GoodMessage[]; bad: BadMessage[] } {
  const good: GoodMessage[] = [];
  const bad: BadMessage[] = [];
  for (const { seq, data, at } of messages) {
    const parsed = Report.safeParse(data);
    if (parsed.success) {
      good.push({ seq, at, report: parsed.data });
    } else {
      const issue = parsed.error.issues[0];
      const node = (data as { node?: unknown } | null)?.node;
      const reason = `not a report: ${issue?.path.join(".") || "the whole"}: ${issue?.message ?? "invalid"}`;
      bad.push({ seq, node: typeof node === "string" ? node : null, reason, data });
    }
  }
  return { good, bad };
}

async function storeBatch(
  tx: Tx,
  batch: readonly GoodMessage[],
): Promise<{ folded: FoldedNode[]; raised: string[] }> {
  if (batch.length === 0) return { folded: [], raised: [] };
  const folded = fold(batch.map(({ report }) => report));
  const stored = await storeNewest(tx, folded);
  await storeEvents(tx, folded.events);
  await storeSeen(tx, batch);
  return { folded: stored, raised: await raise(tx, folded) };
}

async function storeNewest(tx: Tx, { newest }: Fold): Promise<FoldedNode[]> {
  const column = <T>(of: (report: Report) => T): T[] => newest.map(of);
  const text = (value: string | null) => (value === null ? null : storable(value));
  return tx.query<FoldedNode & Record<string, unknown>>(
    `WITH incoming AS (
       SELECT * FROM unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[], $5::text[], $6::text[], $7::text[],
                            $8::text[], $9::text[], string_to_array($10, chr(1)), string_to_array($11, chr(1)))
         AS i(node, host_start, number, sequence, revision, commit, outcome, error, digest, handovers, body)
     ), before AS (
       SELECT r.node, r.outcome, r.digest FROM mesh.reports r JOIN incoming USING (node)
     ), stored AS (
       INSERT INTO mesh.reports AS r
         (node, host_start, number, sequence, revision, commit, outcome, error, digest, progress, handovers, body)
       SELECT node, host_start, number, sequence, revision, commit, outcome, error, digest,
              host_start || '/' || number, handovers::jsonb, body FROM incoming ORDER BY node
       ON CONFLICT (node) DO UPDATE SET
         host_start = excluded.host_start, number = excluded.number, at = now(), sequence = excluded.sequence,
         revision = excluded.revision, commit = excluded.commit, outcome = excluded.outcome, error = excluded.error,
         progress = CASE WHEN r.digest = excluded.digest THEN r.progress ELSE excluded.progress END,
         digest = excluded.digest, handovers = excluded.handovers, body = excluded.body
       WHERE (excluded.host_start, excluded.number) > (r.host_start, r.number)
       RETURNING node, sequence, outcome, digest
     )
     SELECT s.node, s.sequence, s.outcome, b.outcome AS "outcomeBefore",
            s.digest IS DISTINCT FROM b.digest AS progressed
     FROM stored s LEFT JOIN before b USING (node) ORDER BY s.node`,
    [
      column((r) => storable(r.node)),
      column((r) => storable(r.hostStart)),
      column((r) => r.number),
      column((r) => r.sequence),
      column((r) => text(r.revision)),
      column((r) => text(r.commit)),
      column((r) => r.outcome),
      column((r) => text(r.error)),
      column((r) => progressDigest(r)),
      joined(column((r) => storableJson(r.handovers))),
      joined(column((r) => storableJson({ ...r, events: [] }))),
    ],
  );
}

async function storeEvents(tx: Tx, events: readonly FoldedEvent[]): Promise<void> {
  if (events.length === 0) return;
  await tx.query(
    `INSERT INTO mesh.events (node, host_start, number, place, at, kind, resource, detail)
     SELECT * FROM unnest($1::text[], $2::text[], $3::bigint[], $4::int[], $5::timestamptz[], $6::text[], $7::text[], $8::text[])
     ON CONFLICT DO NOTHING`,
    [
      events.map((e) => storable(e.node)),
      events.map((e) => storable(e.hostStart)),
      events.map((e) => e.number),
      events.map((e) => e.place),
      events.map((e) => e.event.at),
      events.map((e) => e.event.kind),
      events.map((e) => (e.event.resource === null ? null : storable(e.event.resource))),
      events.map((e) => storable(e.event.detail)),
    ],
  );
}

/** By the broker's time: a report that lay in the stream for an hour does not make its node heard now. */
async function storeSeen(tx: Tx, batch: readonly GoodMessage[]): Promise<void> {
  const now = Date.now();
  const seen = batch.map(({ report, at }) => ({
    node: storable(report.node),
    ago: at ? Math.max(0, now - at) : 0,
  }));
  await tx.query(
    `INSERT INTO mesh.seen AS s (node, at)
     SELECT node, now() - min(ago) * interval '1 ms' FROM unnest($1::text[], $2::float8[]) AS i(node, ago)
     GROUP BY node ORDER BY node
     ON CONFLICT (node) DO UPDATE SET at = greatest(s.at, excluded.at)`,
    [seen.map((s) => s.node), seen.map((s) => s.ago)],
  );
}

/**
 * A host that holds a higher sequence than the store knows, or the same one with another content: the store was restored from
 * a backup. What is wanted goes above it.
 */
async function raise(tx: Tx, { newest }: Fold): Promise<string[]> {
  const rows = await tx.query<{ name: string }>(
    `WITH found AS (SELECT * FROM unnest($1::text[], $2::bigint[], $3::text[]) AS i(node, sequence, revision)),
     held AS (SELECT n.name, f.sequence FROM mesh.nodes n JOIN found f ON f.node = n.name
              WHERE f.sequence > n.wanted_seq OR (f.sequence > 0 AND f.sequence = n.wanted_seq AND f.revision <> n.wanted_revision)
              ORDER BY n.name FOR UPDATE OF n)
     UPDATE mesh.nodes n SET wanted_at = now(),
       wanted_seq = h.sequence + CASE WHEN n.wanted_revision IS NULL THEN 0 ELSE 1 END
     FROM held h WHERE n.name = h.name AND h.sequence >= n.wanted_seq RETURNING n.name`,
    [newest.map((r) => r.node), newest.map((r) => r.sequence), newest.map((r) => r.revision)],
  );
  return rows.map(({ name }) => name);
}

async function setAside(tx: Tx, stream: string, bad: readonly BadMessage[]): Promise<void> {
  if (bad.length === 0) return;
  await tx.query(
    `INSERT INTO mesh.rejected (stream, seq, node, reason, body)
     SELECT $1, * FROM unnest($2::bigint[], $3::text[], $4::text[], $5::text[])`,
    [
      stream,
      bad.map((b) => b.seq),
      bad.map((b) => (b.node === null ? null : storable(b.node))),
      bad.map((b) => storable(b.reason)),
      bad.map((b) =>
        storable(typeof b.data === "string" ? b.data : JSON.stringify(b.data ?? null)).slice(0, 65_536),
      ),
    ],
  );
}

/** What was set aside, newest first, for `mesh doctor`. */
export async function readRejected(
  db: Db,
  limit = 20,
): Promise<Array<{ stream: string; seq: number; node: string | null; reason: string; at: string }>> {
  return db.query("SELECT stream, seq, node, reason, at FROM mesh.rejected ORDER BY id DESC LIMIT $1", [
    limit,
  ]);
}
