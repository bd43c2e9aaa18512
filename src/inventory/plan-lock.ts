import { meshError } from "../errors.ts";
import { StoreBusy, type Tx } from "../io/postgres.ts";
import type { Inventory } from "./index.ts";

export class BusyRetry extends meshError(
  "busy-retry",
  "retry",
  (f: { waitedMs: number }) =>
    `another plan work held the plan's lock for ${f.waitedMs} ms; nothing was changed, try again`,
) {}

export class NotActive extends meshError(
  "not-active",
  "wait",
  (f: { epoch: number }) =>
    `epoch ${f.epoch} is over: another controller is active, this one changes nothing and stands by`,
) {}

const PLAN_LOCK = 0x6d657368_02n;

/**
 * A holder that is paused or cut off loses the transaction, and the lock with it, before a standby takes over (7 s).
 * A statement is given longer than a pause: it makes progress by itself.
 */
export const PLAN_LIMITS = { statementMs: 5_000, idleMs: 3_000, lockMs: 3_000 };

export interface PlanLockOptions {
  /** "try": skips at once while another holds the lock (the timer). "wait": waits, at most `lockMs`. */
  mode: "try" | "wait";
  /** Of the active controller; null for verbs, which any controller answers. */
  epoch: number | null;
  lockMs?: number;
}

/**
 * One transaction that holds the plan's advisory lock. Inside it:
 * - the plan, its commands and the nodes' wanted rows are read, changed and saved, whole, by this holder alone;
 * - with an epoch, no other controller takes over before it ends;
 * - nothing of Git, composition or NATS is awaited, and nothing is remembered outside until it was saved;
 * - rows are locked in this order: advisory lock, epoch, plan, nodes (by name), reports, seen.
 * It ends with the transaction, however that ends; there is no unlock to forget.
 * @returns "skipped" when `mode` is "try" and another holds the lock
 * @throws BusyRetry when the wait was too long; NotActive when the epoch is over
 */
export async function withPlanLock<T>(
  inventory: Inventory,
  options: PlanLockOptions,
  work: (tx: Tx) => Promise<T>,
): Promise<T | "skipped"> {
  const limits = { ...PLAN_LIMITS, lockMs: options.lockMs ?? PLAN_LIMITS.lockMs };
  return inventory.db.transaction(limits, async (tx) => {
    if (options.mode === "try") {
      if (!(await tryLock(tx))) return "skipped";
    } else {
      await waitForLock(tx, limits.lockMs);
    }
    if (options.epoch !== null) await requireEpoch(tx, options.epoch);
    return work(tx);
  });
}

/** One transaction of the active controller without the plan's lock: folding. */
export async function withEpoch<T>(
  inventory: Inventory,
  epoch: number,
  work: (tx: Tx) => Promise<T>,
): Promise<T> {
  return inventory.db.transaction(PLAN_LIMITS, async (tx) => {
    await requireEpoch(tx, epoch);
    return work(tx);
  });
}

async function tryLock(tx: Tx): Promise<boolean> {
  const rows = await tx.query<{ locked: boolean }>("SELECT pg_try_advisory_xact_lock($1) AS locked", [
    PLAN_LOCK.toString(),
  ]);
  return rows[0]!.locked;
}

async function waitForLock(tx: Tx, waitedMs: number): Promise<void> {
  try {
    await tx.query("SELECT pg_advisory_xact_lock($1)", [PLAN_LOCK.toString()]);
  } catch (cause) {
    throw cause instanceof StoreBusy ? new BusyRetry({ waitedMs }, { cause }) : cause;
  }
}

/** A takeover waits until this transaction is over; renewals do not. */
async function requireEpoch(tx: Tx, epoch: number): Promise<void> {
  const rows = await tx.query("SELECT 1 FROM mesh.active WHERE epoch = $1 FOR KEY SHARE", [epoch]);
  if (rows.length === 0) throw new NotActive({ epoch });
}
