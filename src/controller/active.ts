import { randomBytes } from "node:crypto";
import { hostname } from "node:os";
import {
  announceController,
  forgetController,
  freeSeat,
  LEASE_SECONDS,
  type Role,
  renewSeat,
  takeSeat,
} from "../inventory/controllers.ts";
import type { Inventory } from "../inventory/index.ts";
import type { Clock } from "../io/clock.ts";

export interface ActiveOptions {
  inventory: Pick<Inventory, "lease">;
  /** Unique per start of the program: `controllerId()`. */
  id: string;
  clock: Clock;
  /** Whether the work could be done now: who could not leaves the seat to others, and does not take and lose it in turns. */
  able(): boolean;
  /** Called with the new epoch; what it starts carries that epoch into every transaction. */
  onGain(epoch: number): void;
  /** Called once per gain, at once: stop consuming and working. */
  onLose(why: string): void;
  /** Each failed round (the store is away), for the log. */
  onTrouble?(error: unknown): void;
}

/** This controller's part in who is active. */
export interface Active {
  readonly role: Role;
  /** Of this controller while it is active. */
  readonly epoch: number | null;
  /** Reached the store in its last round. */
  readonly reachable: boolean;
  /** Asks for the seat or renews it each second until stopped. */
  start(): void;
  /** Whoever finds its epoch over (NotActive) says so here, sooner than the next renewal would. */
  lose(why: string): void;
  /** Frees the seat, so that a standby takes it within a second or two. Throws nothing. */
  stop(): Promise<void>;
}

const ROUND_MS = 1_000;

export function controllerId(): string {
  return `${hostname()}-${process.pid}-${randomBytes(3).toString("hex")}`;
}

/**
 * One row in Postgres says who is active. Renewed each second; 5 s unrenewed by Postgres' own clock, or freed, it goes to
 * the standby that asks first, with a higher epoch. A failed renewal loses it here at once: whether another has it is not known.
 */
export function createActive(options: ActiveOptions): Active {
  const { inventory, id, clock, able, onGain, onLose, onTrouble } = options;
  const ending = new AbortController();
  let epoch: number | null = null;
  let renewedAt = 0;
  let reachable = false;
  let loop: Promise<void> | null = null;

  const lose = (why: string): void => {
    if (epoch === null) return;
    epoch = null;
    onLose(why);
  };
  const round = async (): Promise<void> => {
    const askedAt = clock.monotonic();
    if (epoch !== null && askedAt - renewedAt > LEASE_SECONDS * 1_000) lose("this process was paused");
    if (epoch !== null) {
      if (await renewSeat(inventory.lease, id, epoch)) renewedAt = askedAt;
      else lose("another controller took over");
    } else if (able()) {
      const taken = await takeSeat(inventory.lease, id);
      if (taken !== null && !ending.signal.aborted) {
        epoch = taken;
        renewedAt = askedAt;
        onGain(taken);
      }
    }
    await announceController(inventory.lease, id, epoch === null ? "standby" : "active");
    reachable = true;
  };
  const run = async (): Promise<void> => {
    while (!ending.signal.aborted) {
      const startedAt = clock.monotonic();
      try {
        await round();
      } catch (error) {
        reachable = false;
        lose("the store did not answer");
        onTrouble?.(error);
      }
      const wait = Math.max(0, ROUND_MS - (clock.monotonic() - startedAt));
      await clock.sleep(wait, ending.signal).catch(() => undefined);
    }
  };
  return {
    get role() {
      return epoch === null ? "standby" : "active";
    },
    get epoch() {
      return epoch;
    },
    get reachable() {
      return reachable;
    },
    start() {
      loop ??= run();
    },
    lose,
    async stop() {
      ending.abort();
      await loop;
      const held = epoch;
      epoch = null;
      try {
        if (held !== null) await freeSeat(inventory.lease, id, held);
        await forgetController(inventory.lease, id);
      } catch (error) {
        // The seat runs out by itself.
        onTrouble?.(error);
      }
    },
  };
}
