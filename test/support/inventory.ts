import type { SentView } from "../../src/composition/view.ts";
import { keepBodies } from "../../src/inventory/bodies.ts";
import { takeSeat } from "../../src/inventory/controllers.ts";
import { readComposeFacts } from "../../src/inventory/generation.ts";
import { type Inventory, openInventory } from "../../src/inventory/index.ts";
import type { DeclaredNode } from "../../src/inventory/nodes.ts";
import { systemClock } from "../../src/io/clock.ts";
import { type Merge, type Merged, mergePlan } from "../../src/plan/merge.ts";
import type { Plan, PlanNode, TierNumber } from "../../src/plan/model.ts";
import type { Report } from "../../src/report/schema.ts";
import { aDatabase } from "./postgres.ts";

/** A fresh inventory whose seat is taken: `epoch` works plans and folds. */
export async function anInventory(): Promise<{
  inventory: Inventory;
  url: string;
  epoch: number;
  done(): Promise<void>;
}> {
  const database = await aDatabase();
  const inventory = await openInventory(database.url, { name: "test" });
  const epoch = (await takeSeat(inventory.lease, "test"))!;
  return {
    inventory,
    url: database.url,
    epoch,
    async done() {
      await inventory.close();
      await database.drop();
    },
  };
}

export function aReport(over: Partial<Report> = {}): Report {
  return {
    format: 1,
    node: "web-1",
    hostStart: "2026-01-01T00:00:00.000Z-aaaa",
    number: 1,
    at: "2026-01-01T00:00:01.000Z",
    version: "0.1.0",
    arch: "x64",
    outcome: "applied",
    error: null,
    revision: "r1",
    sequence: 1,
    commit: "c1",
    resources: [],
    differences: [],
    handovers: [],
    events: [],
    limits: [],
    droppedReports: 0,
    ...over,
  };
}

export function aDeclaredNode(name: string, over: Partial<DeclaredNode> = {}): DeclaredNode {
  return { name, address: "127.0.0.11", labels: {}, mode: "enforce", retire: false, ...over };
}

export function aSentView(over: Partial<SentView> = {}): SentView {
  return { address: "127.0.0.11", labels: {}, mode: "enforce", modules: [], ...over };
}

export function aPlanNode(node: string, revision: string, over: Partial<PlanNode> = {}): PlanNode {
  return {
    node,
    batch: null,
    state: "pending",
    revision,
    sentAt: null,
    appliedAt: null,
    progressAt: null,
    error: null,
    failedBefore: false,
    released: false,
    sequence: null,
    progress: null,
    skip: false,
    resend: false,
    ...over,
  };
}

/** A running plan whose tier 2 gives each node the revision "<commit>/<node>". */
export function aPlan(id: number, commit: string, nodes: readonly string[]): Plan {
  const tier = (number: TierNumber, planNodes: PlanNode[]): Plan["tiers"][number] => ({
    tier: number,
    state: planNodes.length > 0 ? "pending" : "skipped",
    builds: [],
    nodes: planNodes,
    batch: 0,
    batchDoneAt: null,
  });
  return {
    id,
    commit,
    subject: `commit ${commit}`,
    base: null,
    state: "running",
    reason: null,
    createdAt: "2026-01-01T00:00:00.000Z",
    finishedAt: null,
    tiers: [
      tier(0, []),
      tier(1, []),
      tier(
        2,
        nodes.map((node) => aPlanNode(node, `${commit}/${node}`)),
      ),
    ],
    rollout: { batches: ["100%"], maxFailures: 0, maxSilent: "20%", soak: 0, timeout: 600_000 },
    heartbeatMs: 30_000,
    guard: { hits: [], confirmed: null },
    stopped: null,
    supersededBy: null,
    clock: { workedAt: "2026-01-01T00:00:00.000Z", steppedAt: null, told: null },
  };
}

/** Merges a commit that gives `nodes` something new in tier 2. */
export async function aMerge(
  at: { inventory: Inventory; epoch: number },
  commit: string,
  nodes: readonly string[],
  over: Partial<Merge> = {},
): Promise<Merged> {
  const bodies = nodes.map((node) => ({
    revision: `${commit}/${node}`,
    node,
    body: JSON.stringify({ node, commit }),
  }));
  await keepBodies(at.inventory.db, bodies);
  return mergePlan(
    { ...at, clock: systemClock },
    {
      generation: (await readComposeFacts(at.inventory.db)).generation,
      commit,
      subject: `commit ${commit}`,
      mesh: {} as Merge["mesh"],
      declared: nodes.map((name) => aDeclaredNode(name)),
      ports: new Map(),
      targets: nodes.map((node) => ({ node, tier: 2, revision: `${commit}/${node}`, sent: aSentView() })),
      unchanged: [],
      makePlan: (id) => aPlan(id, commit, nodes),
      ...over,
    },
  );
}
