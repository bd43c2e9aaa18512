import { Cron } from "croner";
import { messageOf } from "../../errors.ts";
import { ScheduleInvalid } from "./errors.ts";

/**
 * The next time (ms since 1970) a five-field cron line comes up after `from`, in the machine's time zone.
 * Asked anew from now each time, so that what was missed is not piled up.
 */
export function nextRun(id: string, schedule: string, from: number): number {
  let next: Date | null;
  try {
    next = new Cron(schedule, { mode: "5-part", paused: true }).nextRun(new Date(from));
  } catch (cause) {
    throw new ScheduleInvalid({ id, schedule, why: messageOf(cause) }, { cause });
  }
  if (!next) throw new ScheduleInvalid({ id, schedule, why: "it never comes up" });
  return next.getTime();
}
