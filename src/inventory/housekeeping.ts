import { collectBodies } from "./bodies.ts";
import { pruneEvents } from "./events.ts";
import type { Inventory } from "./index.ts";
import { collectModuleVersions } from "./modules.ts";
import { withPlanLock } from "./plan-lock.ts";
import { collectViews } from "./views.ts";

/** Plans are kept for their history, their targets only while they may be worked. */
const PLANS_KEPT = 500;

/** Removes what nobody asks for any more. By the active controller, every ten minutes or so. */
export async function keepHouse(inventory: Inventory, epoch: number): Promise<void> {
  await withPlanLock(inventory, { mode: "try", epoch }, async (tx) => {
    await tx.query("DELETE FROM mesh.targets WHERE plan < (SELECT max(id) FROM mesh.plans)");
    await tx.query("DELETE FROM mesh.plans WHERE id <= (SELECT max(id) FROM mesh.plans) - $1", [PLANS_KEPT]);
    await tx.query("DELETE FROM mesh.plan_commands WHERE plan NOT IN (SELECT id FROM mesh.plans)");
    await tx.query("DELETE FROM mesh.calls WHERE at < now() - interval '1 day'");
    await tx.query("DELETE FROM mesh.controllers WHERE seen_at < now() - interval '1 hour'");
    await tx.query("DELETE FROM mesh.rejected WHERE id <= (SELECT max(id) FROM mesh.rejected) - 1000");
    await pruneEvents(tx);
    await collectBodies(tx);
    await collectViews(tx);
    await collectModuleVersions(tx);
  });
}
