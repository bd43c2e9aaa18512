import type { CatalogueReader } from "../catalogue/open.ts";
import { subjects } from "../declaration/names.ts";
import { meshError } from "../errors.ts";
import { type CatalogueState, readCatalogueState } from "../inventory/catalogue.ts";
import type { Inventory } from "../inventory/index.ts";
import type { Clock } from "../io/clock.ts";
import type { Broker } from "../io/nats.ts";

export class TipRefused extends meshError(
  "tip-refused",
  "stalled",
  (f: { commit: string | null; problems: number; first: string }) =>
    `commit ${(f.commit ?? "of the ref").slice(0, 10)} is refused: ${f.first}${f.problems > 1 ? ` (and ${f.problems - 1} more)` : ""}; \`mesh status\` lists them, the last good commit stays in force`,
) {}

export class TipUnread extends meshError(
  "tip-unread",
  "retry",
  (f: { commit: string; withinMs: number }) =>
    `commit ${f.commit.slice(0, 10)} was not read by the active controller within ${f.withinMs} ms; try again, or see \`mesh status\``,
) {}

/**
 * Reads the ref and waits until the active controller, this one or another, has made a plan of what stands there.
 * @throws TipRefused when the commit has problems; TipUnread when nobody looked at it in time; RefMissing
 */
export async function awaitTip(
  deps: { inventory: Inventory; reader: CatalogueReader; clock: Clock; broker: Broker },
  look: (() => Promise<void>) | null,
  withinMs: number,
): Promise<void> {
  const { inventory, reader, clock, broker } = deps;
  const commit = await reader.resolveRef();
  const until = clock.monotonic() + withinMs;
  let hinted = false;
  for (;;) {
    const state = await readCatalogueState(inventory.db);
    if (state.commit === commit && state.problems.length === 0 && state.goodCommit === commit) return;
    if (state.commit === commit && state.problems.length > 0) throw refused(state);
    if (clock.monotonic() > until) throw new TipUnread({ commit, withinMs });
    if (!hinted) {
      hinted = true;
      if (look) void look();
      else await broker.js.publish(subjects.control("merge"), new Uint8Array()).catch(() => undefined);
    }
    await clock.sleep(20);
  }
}

function refused({ commit, problems }: CatalogueState): TipRefused {
  const first = problems[0]!;
  const place = first.file === "" ? "" : `${first.file}:${first.line}:${first.column}: `;
  return new TipRefused({ commit, problems: problems.length, first: `${place}${first.message}` });
}
