import { type MeshError, meshError } from "../errors.ts";
import { currentTier } from "./decide.ts";
import { copyPlan } from "./draft.ts";
import type { Plan } from "./model.ts";
import { reasons } from "./reasons.ts";

export class PlanOver extends meshError(
  "plan-over",
  "stalled",
  (f: { id: number; state: string; by: number | null }) =>
    f.by === null
      ? `plan ${f.id} is ${f.state} and takes no command; see \`mesh plan ${f.id}\``
      : `plan ${f.id} was superseded by plan ${f.by} and takes no command; see \`mesh plan ${f.by}\``,
) {}

export class PlanStopped extends meshError(
  "plan-stopped",
  "stalled",
  (f: { id: number }) =>
    `plan ${f.id} is stopped and takes no confirm; let it go on with \`mesh plans retry ${f.id}\` first`,
) {}

export class NothingToConfirm extends meshError(
  "nothing-to-confirm",
  "stalled",
  (f: { id: number }) =>
    `plan ${f.id} asks for no confirm: the guard found nothing; \`mesh plan ${f.id}\` says what it waits for`,
) {}

export class NothingToRetry extends meshError(
  "nothing-to-retry",
  "stalled",
  (f: { id: number }) =>
    `plan ${f.id} is not stopped and nothing of it failed; \`mesh plan ${f.id}\` says what it waits for`,
) {}

export class NodeNotInPlan extends meshError(
  "node-not-in-plan",
  "stalled",
  (f: { id: number; node: string }) =>
    `plan ${f.id} does not touch node "${f.node}"; \`mesh plan ${f.id}\` lists those it does`,
) {}

/** `plans stop|retry|confirm|skip`. `node`: of skip. */
export interface PlanCommand {
  command: "stop" | "retry" | "confirm" | "skip";
  node: string | null;
  by: string;
}

/**
 * Puts an operator's command into a plan and returns the changed copy; decide, run next, does what follows. Pure. A command
 * given twice changes nothing more.
 * @param now wall clock, milliseconds since 1970
 * @param newerPlan id of a newer plan, whether or not this one was worked since (a superseded plan takes no command)
 * @throws PlanOver, PlanStopped, NothingToConfirm, NothingToRetry, NodeNotInPlan
 */
export function applyCommand(
  plan: Plan,
  command: PlanCommand,
  now: number,
  newerPlan: number | null = null,
): Plan {
  const refusal = refuse(plan, command, newerPlan);
  if (refusal) throw refusal;
  const copy = copyPlan(plan);
  const mark = { by: command.by, at: new Date(now).toISOString() };
  if (command.command === "stop") stop(copy, mark);
  else if (command.command === "confirm") confirm(copy, mark);
  else if (command.command === "skip") skip(copy, command.node);
  else retry(copy);
  return copy;
}

function refuse(plan: Plan, { command, node }: PlanCommand, newerPlan: number | null): MeshError | null {
  const { id, state } = plan;
  const by = plan.supersededBy ?? newerPlan;
  if (state === "done" || state === "superseded" || by !== null) return new PlanOver({ id, state, by });
  if (command === "confirm" && plan.guard.hits.length === 0) return new NothingToConfirm({ id });
  if (command === "confirm" && plan.stopped) return new PlanStopped({ id });
  if (command === "retry" && !plan.stopped && !hasFailed(plan)) return new NothingToRetry({ id });
  if (command === "skip" && !touches(plan, node)) return new NodeNotInPlan({ id, node: node ?? "" });
  return null;
}

function touches(plan: Plan, name: string | null): boolean {
  return plan.tiers.some((tier) => tier.nodes.some(({ node }) => node === name));
}

/** Also while a `retry` is on its way to be worked, so that the same command given twice is not refused. */
function hasFailed(plan: Plan): boolean {
  return plan.tiers.some(
    ({ nodes, builds }) =>
      nodes.some(({ state, resend }) => state === "failed" || resend) ||
      builds.some(({ state }) => state === "failed"),
  );
}

function stop(plan: Plan, mark: { by: string; at: string }): void {
  plan.stopped ??= mark;
  plan.finishedAt ??= mark.at;
  Object.assign(plan, { state: "stopped", reason: reasons.stopped(plan, plan.stopped.by) });
}

function confirm(plan: Plan, mark: { by: string; at: string }): void {
  if (plan.guard.confirmed) return;
  plan.guard.confirmed = mark;
  Object.assign(plan, { state: "running", reason: null });
}

function retry(plan: Plan): void {
  Object.assign(plan, { stopped: null, finishedAt: null, state: "running", reason: null });
  const tier = currentTier(plan);
  if (tier?.state === "halted") tier.state = "pending";
  for (const { nodes, builds } of plan.tiers) {
    for (const node of nodes) if (node.state === "failed" && node.released) node.resend = true;
    for (const build of builds) {
      if (build.state === "failed") Object.assign(build, { state: "waiting", error: null, asked: false });
    }
  }
}

/** Left out of what is still to come; where the node already applied, that stands. */
function skip(plan: Plan, name: string | null): void {
  for (const { nodes } of plan.tiers) {
    for (const node of nodes) if (node.node === name && node.state !== "applied") node.skip = true;
  }
}
