import { MeshError, messageOf } from "../errors.ts";
import { bumpGeneration } from "../inventory/generation.ts";
import type { Inventory } from "../inventory/index.ts";
import { markRetired } from "../inventory/nodes.ts";
import { withPlanLock } from "../inventory/plan-lock.ts";
import { freePorts } from "../inventory/ports.ts";
import { storableJson } from "../inventory/text.ts";
import type { Clock } from "../io/clock.ts";
import type { Tx } from "../io/postgres.ts";
import { readFacts, type WorkFacts } from "./facts.ts";
import type { Decision, Plan, PlanBuild, PlanFacts } from "./model.ts";
import {
  type CommandRow,
  markWorked,
  type PlanCommand,
  readCommands,
  readNewestPlan,
  savePlan,
  type Target,
} from "./store.ts";
import { nextWakeAt } from "./wake.ts";

/** What asks for plan work. The timer skips while another works; the others wait for it. */
export type Trigger = "timer" | "report" | "merge" | "build" | "command" | "connected";

export type Decide = (plan: Plan, facts: PlanFacts, now: number) => Decision;
/** Pure; throws a MeshError where the plan's state refuses the command. */
export type ApplyCommand = (plan: Plan, command: PlanCommand, now: number) => Plan;

export interface WorkDeps {
  inventory: Inventory;
  /** Of the active controller. */
  epoch: number;
  decide: Decide;
  applyCommand: ApplyCommand;
  clock: Pick<Clock, "now">;
  facts(): WorkFacts;
}

export type WorkResult =
  | { worked: false; why: "locked" | "no-plan" }
  | {
      worked: true;
      plan: Plan;
      /** Something was saved. */
      changed: boolean;
      /** Nodes whose wanted declaration changed: publish now (`readUnpublished`). */
      released: string[];
      /** To be asked now; repeating an ask has no second effect. */
      asks: PlanBuild[];
      /** Nodes that this work found emptied, retired from now on. */
      retired: string[];
      /** Run it again then (ms since 1970), though nothing was heard; null: time alone changes nothing. */
      wakeAt: number | null;
    };

/**
 * One run of the newest plan: read, decide, save whole, in one transaction under the plan's lock. What it says may only be
 * acted on once it has returned: then it is saved.
 * @throws BusyRetry, NotActive, StoreUnreachable, TransactionLost: nothing was saved, run it again; CommitUnknown: run it again
 *   too, it reads what was saved
 */
export async function workPlan(deps: WorkDeps, trigger: Trigger): Promise<WorkResult> {
  const mode = trigger === "timer" ? "try" : "wait";
  for (let tries = 1; ; tries++) {
    try {
      const result = await withPlanLock(deps.inventory, { mode, epoch: deps.epoch }, (tx) =>
        workIn(tx, deps),
      );
      return result === "skipped" ? { worked: false, why: "locked" } : result;
    } catch (error) {
      // A report raised a node's sequence in between: look again.
      if (!(error instanceof SequenceMoved) || tries === 5) throw error;
    }
  }
}

class SequenceMoved extends Error {}

async function workIn(tx: Tx, deps: WorkDeps): Promise<WorkResult> {
  const newest = await readNewestPlan(tx);
  if (!newest) return { worked: false, why: "no-plan" };
  const before = newest.plan;
  const retired = await markRetired(tx);
  const now = deps.clock.now();
  const commanded = applyCommands(before, await readCommands(tx, before.id), deps.applyCommand, now);
  await markWorked(tx, commanded.worked);
  const facts = await readFacts(tx, commanded.plan, deps.facts());
  const { plan, release, asks } = deps.decide(commanded.plan, facts, now);
  const text = storableJson(plan);
  const changed = text !== newest.text;
  if (changed) await savePlan(tx, plan, text);
  const held = newlyHeld(before, plan, release);
  if (release.length + held.length > 0) {
    await bumpGeneration(tx);
    await setWanted(tx, plan, release);
    await advanceQuietly(tx, plan, held);
    await tx.query("UPDATE mesh.catalogue_state SET base = $1", [plan.commit]);
  }
  if (plan.state === "done" && before.state !== "done") await freePorts(tx, plan.id);
  const released = release.map(({ node }) => node);
  return { worked: true, plan, changed, released, asks, retired, wakeAt: nextWakeAt(plan, facts, now) };
}

/** In the order given; one that the plan's state refuses by now is marked with the reason and has no effect. */
function applyCommands(
  plan: Plan,
  commands: readonly CommandRow[],
  apply: ApplyCommand,
  now: number,
): { plan: Plan; worked: Array<{ id: number; refusal: string | null }> } {
  let current = plan;
  const worked = commands.map((command) => {
    try {
      current = apply(current, command, now);
      return { id: command.id, refusal: null };
    } catch (error) {
      if (!(error instanceof MeshError)) throw error;
      return { id: command.id, refusal: messageOf(error) };
    }
  });
  return { plan: current, worked };
}

/** Sets what is released wanted, under exactly the sequences decide chose, and keeps what it is for the next composition. */
async function setWanted(tx: Tx, plan: Plan, release: Decision["release"]): Promise<void> {
  if (release.length === 0) return;
  const set = await tx.query(
    `UPDATE mesh.nodes n SET wanted_seq = r.sequence, wanted_revision = t.revision, wanted_commit = $2,
       wanted_tier = t.tier, wanted_at = now(), sent = t.sent
     FROM unnest($3::text[], $4::smallint[], $5::bigint[]) AS r(node, tier, sequence)
     JOIN mesh.targets t ON t.plan = $1 AND t.node = r.node AND t.tier = r.tier
     WHERE n.name = r.node AND r.sequence > n.wanted_seq RETURNING 1`,
    [
      plan.id,
      plan.commit,
      release.map((r) => r.node),
      release.map((r) => r.tier),
      release.map((r) => r.sequence),
    ],
  );
  if (set.length !== release.length) throw new SequenceMoved();
}

/** Nodes that this run releases and that are wanted to hold just that already, from a plan before: nothing is sent. */
function newlyHeld(before: Plan, plan: Plan, release: Decision["release"]): Array<Omit<Target, "sent">> {
  const sent = new Set(release.map(({ node, tier }) => `${tier} ${node}`));
  return plan.tiers.flatMap(({ tier, nodes }, t) => {
    const was = new Set(before.tiers[t]!.nodes.filter(({ released }) => released).map(({ node }) => node));
    return nodes
      .filter((node) => node.released && !was.has(node.node) && !sent.has(`${tier} ${node.node}`))
      .map(({ node, revision }) => ({ node, tier, revision }));
  });
}

async function advanceQuietly(tx: Tx, plan: Plan, held: ReadonlyArray<Omit<Target, "sent">>): Promise<void> {
  if (held.length === 0) return;
  await tx.query(
    `UPDATE mesh.nodes n SET wanted_commit = $2, wanted_tier = t.tier, sent = t.sent
     FROM unnest($3::text[], $4::smallint[]) AS h(node, tier)
     JOIN mesh.targets t ON t.plan = $1 AND t.node = h.node AND t.tier = h.tier
     WHERE n.name = h.node AND n.wanted_revision = t.revision`,
    [plan.id, plan.commit, held.map((h) => h.node), held.map((h) => h.tier)],
  );
}
