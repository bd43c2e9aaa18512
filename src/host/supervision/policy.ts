import { z } from "zod";
import type { ProcessSpec } from "./types.ts";

/**
 * What the restart policy remembers of one process, across hosts.
 * failures: consecutive ends before `resetAfter`; restarts: since the wanted version was declared;
 * due: wall time (ms) of the start that is waited for, null when none is.
 */
export const PolicyState = z.strictObject({
  failures: z.int(),
  restarts: z.int(),
  rolledBack: z.boolean(),
  halted: z.boolean(),
  due: z.number().nullable(),
});
export type PolicyState = z.infer<typeof PolicyState>;

export const freshPolicy: PolicyState = {
  failures: 0,
  restarts: 0,
  rolledBack: false,
  halted: false,
  due: null,
};

export type Next =
  | { do: "start"; delay: number; policy: PolicyState }
  | { do: "roll-back"; delay: number; policy: PolicyState }
  | { do: "halt"; policy: PolicyState };

export interface End {
  /** How long it had been up, ms; 0 when it could not be started. */
  up: number;
  /** Its last check passed, or it has none. */
  passing: boolean;
  /** Another version that was proven is known. */
  previous: boolean;
  /** Its own end or bad start; its check that failed; this host could not start it (disk, memory); the machine was restarted. */
  cause: "ended" | "unhealthy" | "host" | "reboot";
  /** 0 to 1. */
  random: number;
}

type Restart = ProcessSpec["restart"];

/** `first`, doubled for each further failure up to `max`, 25% either way. */
export function backoff(restart: Restart, failures: number, random: number): number {
  const base = Math.min(restart.max, restart.first * 2 ** Math.min(30, Math.max(0, failures - 1)));
  return Math.round(base * (0.75 + 0.5 * random));
}

/**
 * What follows the end of a service. Without a version to go back to, `haltAfter` counts on the wanted one.
 * A failed check, and a host that cannot start anything, lead to a new start but never roll back or halt: the cause is
 * as often another service, or the machine.
 */
export function afterEnd(restart: Restart, state: PolicyState, end: End, now: number): Next {
  const again = (failures: number, delay: number): Next => ({
    do: "start",
    delay,
    policy: { ...state, failures, restarts: state.restarts + 1, due: now + delay },
  });
  if (end.cause === "reboot") return again(state.failures, 0);
  const longEnough = end.up >= restart.resetAfter;
  if (end.cause !== "ended")
    return again(state.failures, longEnough ? 0 : backoff(restart, state.failures + 1, end.random));
  if (longEnough && end.passing) return again(0, 0);
  const failures = state.failures + 1;
  if (!state.rolledBack && end.previous && failures >= restart.rollbackAfter)
    return {
      do: "roll-back",
      delay: 0,
      policy: { ...state, failures: 0, restarts: state.restarts + 1, rolledBack: true, due: now },
    };
  if ((state.rolledBack || !end.previous) && failures >= restart.haltAfter)
    return { do: "halt", policy: { ...state, failures, halted: true, due: null } };
  return again(failures, longEnough ? 0 : backoff(restart, failures, end.random));
}

/** The policy once it has been up and passing for `resetAfter`. */
export function steadied(state: PolicyState): PolicyState {
  return state.failures === 0 ? state : { ...state, failures: 0 };
}
