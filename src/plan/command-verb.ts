import { meshError } from "../errors.ts";
import { runCall } from "../inventory/calls.ts";
import type { Inventory } from "../inventory/index.ts";
import type { Clock } from "../io/clock.ts";
import type { Plan } from "./model.ts";
import { addCommand, type PlanCommand, readPlan } from "./store.ts";
import type { ApplyCommand } from "./work.ts";

export class PlanUnknown extends meshError(
  "plan-unknown",
  "stalled",
  (f: { id: number }) => `there is no plan ${f.id}; \`mesh plans\` lists those that are kept`,
) {}

export class PlanSuperseded extends meshError(
  "plan-superseded",
  "stalled",
  (f: { id: number; by: number; command: string }) =>
    `plan ${f.id} was superseded by plan ${f.by}, it takes no ${f.command}; see \`mesh plan ${f.by}\``,
) {}

/**
 * The verbs `plans stop|retry|confirm|skip`, on whichever controller: refused where the plan's state refuses it, else saved as
 * a fact with the call's id. The active controller works it: tell it (a notice on CONTROL), or its timer finds it.
 * @returns the plan as it will be once worked
 */
export async function commandPlan(
  deps: { inventory: Inventory; applyCommand: ApplyCommand; clock: Pick<Clock, "now"> },
  call: { id: string; verb: string },
  asked: { plan: number } & PlanCommand,
): Promise<Pick<Plan, "id" | "commit" | "state" | "reason">> {
  const { plan: id, ...command } = asked;
  return runCall(deps.inventory, call, async (tx) => {
    const plan = await readPlan(tx, id);
    if (!plan) throw new PlanUnknown({ id });
    const newest = await readPlan(tx, "latest");
    if (newest && newest.id !== id) throw new PlanSuperseded({ id, by: newest.id, command: command.command });
    const { commit, state, reason } = deps.applyCommand(plan, command, deps.clock.now());
    await addCommand(tx, id, command);
    return { id, commit, state, reason };
  });
}
