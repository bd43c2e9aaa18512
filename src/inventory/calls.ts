import type { Tx } from "../io/postgres.ts";
import type { Inventory } from "./index.ts";
import { withPlanLock } from "./plan-lock.ts";
import { storableJson } from "./text.ts";

/**
 * A verb that changes something, on whichever controller: `work` checks and inserts its facts under the plan's lock, and its
 * result is saved with the call's id in the same transaction. The same id again gets the first result; `work` does not run.
 * What `work` throws is not saved: a refusal is answered again by looking again.
 * @throws BusyRetry when the lock is held for 3 s
 */
export async function runCall<R>(
  inventory: Inventory,
  call: { id: string; verb: string },
  work: (tx: Tx) => Promise<R>,
): Promise<R> {
  const result = await withPlanLock(inventory, { mode: "wait", epoch: null }, async (tx) => {
    const before = await tx.query<{ result: R }>("SELECT result FROM mesh.calls WHERE id = $1", [call.id]);
    if (before[0]) return before[0].result;
    const first = await work(tx);
    await tx.query("INSERT INTO mesh.calls (id, verb, result) VALUES ($1, $2, $3)", [
      call.id,
      call.verb,
      storableJson(first),
    ]);
    return first;
  });
  return result as R;
}
