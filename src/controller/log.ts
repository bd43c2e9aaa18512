import type { WorkResult } from "../plan/work.ts";
import type { Reconciled } from "./reconcile.ts";

/** What the controller's parts write to; pino is one. */
export interface Log {
  info(facts: object, message: string): void;
  warn(facts: object, message: string): void;
  error(facts: object, message: string): void;
}

export function tellReconciled(log: Log, found: Reconciled): void {
  if (found.outcome === "merged")
    log.info(
      { plan: found.plan.id, commit: found.commit, superseded: found.superseded },
      "a merge became a plan",
    );
  if (found.outcome === "refused")
    log.warn(
      { commit: found.commit, problems: found.problems.length, first: found.problems[0] },
      "the catalogue is refused",
    );
}

export function tellWorked(log: Log, { plan, released }: Extract<WorkResult, { worked: true }>): void {
  const tiers = plan.tiers.map(({ state }) => state);
  log.info(
    { plan: plan.id, state: plan.state, reason: plan.reason, tiers, released: released.length },
    "plan worked",
  );
}
