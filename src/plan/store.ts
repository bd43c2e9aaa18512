import type { SentView } from "../composition/view.ts";
import { storable, storableJson } from "../inventory/text.ts";
import type { Db, Tx } from "../io/postgres.ts";
import type { Plan, PlanState, TierNumber } from "./model.ts";

/** A line of `mesh plans`. `tier` is the one that is worked or was last worked; null: none was. Times ISO. */
export interface PlanSummary {
  id: number;
  commit: string;
  subject: string;
  base: string | null;
  state: PlanState;
  tier: TierNumber | null;
  reason: string | null;
  createdAt: string;
  finishedAt: string | null;
}

/** Newest first. */
export async function readPlans(db: Db, limit = 50): Promise<PlanSummary[]> {
  return db.query<PlanSummary & Record<string, unknown>>(
    `SELECT id, commit, subject, base, state, tier, reason, created_at AS "createdAt", finished_at AS "finishedAt"
     FROM mesh.plans ORDER BY id DESC LIMIT $1`,
    [limit],
  );
}

/** The whole plan, with whatever fields a newer release wrote; null: there is none of that id. */
export async function readPlan(db: Db, id: number | "latest"): Promise<Plan | null> {
  const rows = await db.query<{ body: string }>(
    id === "latest"
      ? "SELECT body FROM mesh.plans ORDER BY id DESC LIMIT 1"
      : "SELECT body FROM mesh.plans WHERE id = $1",
    id === "latest" ? [] : [id],
  );
  return rows[0] ? (JSON.parse(rows[0].body) as Plan) : null;
}

/** The newest plan, and the text it is saved as. */
export async function readNewestPlan(db: Db): Promise<{ plan: Plan; text: string } | null> {
  const rows = await db.query<{ body: string }>("SELECT body FROM mesh.plans ORDER BY id DESC LIMIT 1");
  return rows[0] ? { plan: JSON.parse(rows[0].body) as Plan, text: rows[0].body } : null;
}

/** Under the plan's lock: ids rise by one. */
export async function nextPlanId(tx: Tx): Promise<number> {
  return (await tx.query<{ id: number }>("SELECT coalesce(max(id), 0) + 1 AS id FROM mesh.plans"))[0]!.id;
}

/** Inserts or replaces the plan, whole. `text`: the plan as `storableJson`, where that is at hand. */
export async function savePlan(tx: Tx, plan: Plan, text = storableJson(plan)): Promise<void> {
  await tx.query(
    `INSERT INTO mesh.plans (id, commit, subject, base, state, tier, reason, created_at, finished_at, body)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
     ON CONFLICT (id) DO UPDATE SET state = excluded.state, tier = excluded.tier, reason = excluded.reason,
       finished_at = excluded.finished_at, body = excluded.body`,
    [
      plan.id,
      plan.commit,
      storable(plan.subject),
      plan.base,
      plan.state,
      shownTier(plan),
      plan.reason === null ? null : storable(plan.reason),
      plan.createdAt,
      plan.finishedAt,
      text,
    ],
  );
}

/** The tier that is worked now, else the last that was touched. */
export function shownTier(plan: Plan): TierNumber | null {
  const open = plan.tiers.find(({ state }) => state !== "done" && state !== "skipped");
  return (open ?? plan.tiers.findLast(({ state }) => state === "done"))?.tier ?? null;
}

/** Plans that a newer one takes over, oldest first. */
export async function readOpenPlans(tx: Tx): Promise<Plan[]> {
  const rows = await tx.query<{ body: string }>(
    "SELECT body FROM mesh.plans WHERE state IN ('waiting', 'running', 'halted', 'stopped') ORDER BY id",
  );
  return rows.map(({ body }) => JSON.parse(body) as Plan);
}

/** `plans stop|retry|confirm|skip`, as a fact that plan work works. */
export interface PlanCommand {
  command: "stop" | "retry" | "confirm" | "skip";
  /** Of `skip`. */
  node: string | null;
  by: string;
}

export interface CommandRow extends PlanCommand {
  id: number;
  plan: number;
  at: string;
}

export async function addCommand(tx: Tx, plan: number, command: PlanCommand): Promise<void> {
  await tx.query("INSERT INTO mesh.plan_commands (plan, command, node, by) VALUES ($1, $2, $3, $4)", [
    plan,
    command.command,
    command.node,
    storable(command.by),
  ]);
}

/** Of plan `plan`, not yet worked, in the order in which they were given. */
export async function readCommands(db: Db, plan: number): Promise<CommandRow[]> {
  return db.query<CommandRow & Record<string, unknown>>(
    `SELECT id, plan, command, node, by, at FROM mesh.plan_commands
     WHERE plan = $1 AND worked_at IS NULL ORDER BY id`,
    [plan],
  );
}

/** `refusal`: why it had no effect any more when it was worked; null: it had. */
export async function markWorked(
  tx: Tx,
  worked: ReadonlyArray<{ id: number; refusal: string | null }>,
): Promise<void> {
  if (worked.length === 0) return;
  await tx.query(
    `UPDATE mesh.plan_commands c SET worked_at = now(), refusal = w.refusal
     FROM unnest($1::bigint[], $2::text[]) AS w(id, refusal) WHERE c.id = w.id`,
    [worked.map((w) => w.id), worked.map((w) => w.refusal)],
  );
}

/** What tier `tier` of a plan gives a node; `sent` is the view to keep for it once that is released. */
export interface Target {
  node: string;
  tier: TierNumber;
  revision: string;
  sent: SentView;
}

/** Replaces the targets of all plans before: only the newest is worked. `digests` are those of their views (`keepViews`). */
export async function saveTargets(
  tx: Tx,
  plan: number,
  targets: readonly Target[],
  digests: readonly string[],
): Promise<void> {
  await tx.query("DELETE FROM mesh.targets");
  if (targets.length === 0) return;
  await tx.query(
    `INSERT INTO mesh.targets (plan, tier, node, revision, sent)
     SELECT $1, * FROM unnest($2::smallint[], $3::text[], $4::text[], $5::text[])`,
    [plan, targets.map((t) => t.tier), targets.map((t) => t.node), targets.map((t) => t.revision), digests],
  );
}

/** Revisions among the plan's targets whose bodies nobody kept. */
export async function missingBodies(tx: Tx, plan: number): Promise<string[]> {
  const rows = await tx.query<{ revision: string }>(
    `SELECT DISTINCT revision FROM mesh.targets t WHERE plan = $1
       AND NOT EXISTS (SELECT 1 FROM mesh.bodies b WHERE b.revision = t.revision)`,
    [plan],
  );
  return rows.map(({ revision }) => revision);
}
