import type { Inventory } from "../inventory/index.ts";
import type { Clock } from "../io/clock.ts";
import type { Fault } from "../io/faults.ts";
import type { Broker } from "../io/nats.ts";
import { applyCommand } from "../plan/apply-command.ts";
import { decide } from "../plan/decide.ts";
import { watchSteps } from "../plan/steps.ts";
import { type Trigger, workPlan } from "../plan/work.ts";
import { type Log, tellWorked } from "./log.ts";
import type { Persist } from "./persist.ts";
import { createRunner } from "./runner.ts";

const TIMER = 30_000;
/** A wake-up is never nearer than this, ms. */
const SOONEST = 20;

/** Works the newest plan whenever something asks for it, and when time alone moves it. */
export interface Planner {
  /** One run that begins after this call; asks made meanwhile become one. */
  ask(): void;
  /** One run for this trigger; resolves when it is saved. */
  work(trigger: Trigger): Promise<void>;
  stop(): Promise<void>;
}

export function createPlanner(deps: {
  inventory: Inventory;
  epoch: number;
  broker: Pick<Broker, "status">;
  clock: Clock;
  fault: Fault;
  log: Log;
  persist: Persist;
  /** Something is wanted that was not before: publish it. */
  onReleased(): void;
}): Planner {
  const { inventory, epoch, clock, fault, log } = deps;
  let wake: NodeJS.Timeout | undefined;
  let stopped = false;

  const stepped = watchSteps(clock);
  const facts = () => {
    const { connected, since } = deps.broker.status;
    return { connectedAt: connected ? since : null, steppedAt: stepped(), builderThere: false };
  };
  const workOnce = async (trigger: Trigger): Promise<void> => {
    fault("work");
    const result = await workPlan({ inventory, epoch, decide, applyCommand, clock, facts }, trigger);
    fault("worked");
    if (!result.worked) return;
    if (result.changed) tellWorked(log, result);
    wakeAt(result.wakeAt);
    if (result.released.length > 0) deps.onReleased();
  };
  const work = (trigger: Trigger) => deps.persist("plan work", () => workOnce(trigger));
  const runner = createRunner(() => work("report"));
  const wakeAt = (at: number | null): void => {
    clearTimeout(wake);
    if (at === null || stopped) return;
    const wait = Math.max(SOONEST, Math.min(at - clock.now() + 5, TIMER));
    wake = setTimeout(() => void runner.ask(), wait);
  };
  const timer = setInterval(() => void work("timer"), TIMER);

  return {
    ask: () => void runner.ask(),
    work,
    async stop() {
      stopped = true;
      clearInterval(timer);
      clearTimeout(wake);
      await runner.stop();
    },
  };
}
