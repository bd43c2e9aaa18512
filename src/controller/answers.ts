import type { CatalogueReader } from "../catalogue/open.ts";
import type { DeclarationBody } from "../declaration/schema.ts";
import type { Signer } from "../declaration/sign.ts";
import { meshError } from "../errors.ts";
import { readCatalogueState } from "../inventory/catalogue.ts";
import { readControllers } from "../inventory/controllers.ts";
import { readEvents } from "../inventory/events.ts";
import { readMeshFreeze } from "../inventory/freezes.ts";
import type { Inventory } from "../inventory/index.ts";
import { nodeState } from "../inventory/node-state.ts";
import { type NodeRow, readNodeDetail, readNodes } from "../inventory/nodes.ts";
import type { Clock } from "../io/clock.ts";
import type { Broker } from "../io/nats.ts";
import { PlanUnknown } from "../plan/command-verb.ts";
import { planDocument, planSummary } from "../plan/status.ts";
import { readPlan, readPlans } from "../plan/store.ts";
import { type Report, Report as ReportSchema } from "../report/schema.ts";

const HEARTBEAT_DEFAULT = 30_000;

export class NodeUnknown extends meshError(
  "node-unknown",
  "stalled",
  (f: { node: string; known: string[] }) =>
    `there is no node ${JSON.stringify(f.node)}; \`mesh nodes\` lists them${f.known.length > 0 ? ` (${f.known.slice(0, 5).join(", ")}${f.known.length > 5 ? ", …" : ""})` : ""}`,
) {}

export class ResourceUnknown extends meshError(
  "resource-unknown",
  "stalled",
  (f: { node: string; resource: string; known: string[] }) =>
    `node ${f.node} declares no resource ${JSON.stringify(f.resource)}; it has ${f.known.join(", ") || "none"}`,
) {}

export class NeverSent extends meshError(
  "never-sent",
  "wait",
  (f: { node: string }) => `node ${f.node} was sent no declaration yet; see \`mesh plan latest\``,
) {}

export interface AnswerDeps {
  inventory: Inventory;
  reader: CatalogueReader;
  broker: Pick<Broker, "status">;
  signer: Signer;
  clock: Clock;
  mesh: string;
  ref: string;
}

interface Entry {
  name: string;
  state: string;
  revision: string | null;
  commit: string | null;
  seenAt: string | null;
  handovers: unknown[];
  labels: Record<string, string>;
  error: string | null;
}

/** The documents that read verbs answer; the CLI prints them with --json as they are (DESIGN: programs). */
export function createAnswers(deps: AnswerDeps) {
  const { db } = deps.inventory;

  const entries = async (names?: readonly string[]): Promise<Entry[]> => {
    const { mesh } = await readCatalogueState(db);
    const { connected, since } = deps.broker.status;
    const facts = {
      now: deps.clock.now(),
      heartbeat: mesh?.host.heartbeat ?? HEARTBEAT_DEFAULT,
      connectedAt: connected ? since : null,
    };
    return (await readNodes(db, names)).map((row) => entryOf(row, nodeState(row, facts)));
  };

  const entryNamed = async (name: string): Promise<Entry> => {
    const [entry] = await entries([name]);
    if (entry) return entry;
    throw new NodeUnknown({ node: name, known: (await readNodes(db)).map((node) => node.name) });
  };

  return {
    async status() {
      const state = await readCatalogueState(db);
      const plan = await readPlan(db, "latest");
      const nodes = await entries();
      const { ref, commit, subject, seenAt, deployed, problems } = state;
      return {
        mesh: state.mesh?.name ?? deps.mesh,
        frozen: await readMeshFreeze(db),
        catalogue: { ref: ref ?? deps.ref, commit, subject, seenAt, deployed, problems },
        plan: plan && planSummary(plan),
        controllers: (await readControllers(db)).map(({ id, role, since }) => ({ id, role, since })),
        nodes: nodes.map(({ labels: _, ...node }) => node),
        totals: totals(nodes),
      };
    },

    async nodes(asked: { labels?: Record<string, string> | undefined; failed?: boolean | undefined }) {
      const wanted = Object.entries(asked.labels ?? {});
      const nodes = (await entries()).filter(
        ({ labels, state }) =>
          wanted.every(([key, value]) => labels[key] === value) &&
          (!asked.failed || state === "failed" || state === "refused"),
      );
      return { nodes };
    },

    async node(name: string) {
      const entry = await entryNamed(name);
      const [row] = await readNodes(db, [name]);
      const { report } = await readNodeDetail(db, name);
      const parsed = report === null ? null : ReportSchema.safeParse(report);
      const told = parsed?.success ? parsed.data : null;
      return {
        ...entry,
        resources: told?.resources.map(resourceOf) ?? [],
        handovers: told?.handovers ?? [],
        declared: row && declaredOf(row),
        version: told?.version ?? null,
        arch: told?.arch ?? null,
        limits: told?.limits ?? [],
        differences: told?.differences ?? [],
      };
    },

    /** As it is published: `mesh-host apply FILE` takes it. */
    async declaration(name: string) {
      await entryNamed(name);
      const [row] = await readNodes(db, [name]);
      const { body } = await readNodeDetail(db, name);
      if (!row?.wantedRevision || body === null) throw new NeverSent({ node: name });
      const unsigned = {
        revision: row.wantedRevision,
        sequence: row.wantedSequence,
        commit: row.wantedCommit as string,
        tier: row.wantedTier as 0 | 1 | 2,
        body: body as DeclarationBody,
      };
      return { ...unsigned, signature: deps.signer.sign(unsigned) };
    },

    async why(name: string, resource: string) {
      const entry = await entryNamed(name);
      const { report, body } = await readNodeDetail(db, name);
      const declared = (body as DeclarationBody | null)?.resources ?? [];
      const found = declared.find(({ id }) => id === resource);
      const told = (report as Report | null)?.resources?.find(({ id }) => id === resource);
      if (!found && !told)
        throw new ResourceUnknown({ node: name, resource, known: declared.map(({ id }) => id) });
      const { events } = await readEvents(db, { node: name, limit: 1_000 });
      return {
        node: name,
        resource,
        state: told?.state ?? "pending",
        error: told?.error ?? null,
        note: told?.note ?? null,
        output: told?.last ?? [],
        process: told?.process ?? null,
        nodeState: entry.state,
        nodeError: entry.error,
        declared: found !== undefined,
        placedBy: found ? await placedBy(deps, name, found.module) : [],
        requires: found?.requires ?? [],
        requiredBy: declared.filter(({ requires }) => requires.includes(resource)).map(({ id }) => id),
        commit: entry.commit,
        events: events.filter((event) => event.resource === resource).slice(-10),
      };
    },

    async plans() {
      return { plans: await readPlans(db) };
    },

    async plan(id: number | "latest") {
      const plan = await readPlan(db, id);
      if (!plan) throw new PlanUnknown({ id: typeof id === "number" ? id : 1 });
      return planDocument(plan);
    },

    events: (asked: { after?: number | undefined; limit?: number | undefined }) => readEvents(db, asked),
  };
}
export type Answers = ReturnType<typeof createAnswers>;

function entryOf(row: NodeRow, state: string): Entry {
  const { report } = row;
  // A merge that does not change a node advances its commit without sending anything.
  const current =
    report !== null && report.sequence >= row.wantedSequence && report.revision === row.wantedRevision;
  return {
    name: row.name,
    state,
    revision: report?.revision ?? null,
    commit: current ? row.wantedCommit : (report?.commit ?? null),
    seenAt: row.seenAt,
    handovers: (report?.handovers ?? []) as unknown[],
    labels: row.labels,
    error: report?.error ?? null,
  };
}

function declaredOf(row: NodeRow) {
  if (row.wantedRevision === null) return null;
  const { wantedRevision: revision, wantedSequence: sequence, wantedCommit: commit, wantedTier: tier } = row;
  return { revision, sequence, commit, tier };
}

function resourceOf({ id, type, state, process, error, note, last }: Report["resources"][number]) {
  return { id, type, state, process, error, note, ...(last && last.length > 0 ? { last } : {}) };
}

function totals(nodes: readonly Entry[]): Record<string, number> {
  const counts: Record<string, number> = {
    nodes: nodes.length,
    converged: 0,
    applying: 0,
    failed: 0,
    offline: 0,
  };
  for (const { state } of nodes) counts[state] = (counts[state] ?? 0) + 1;
  return counts;
}

/** Through which files of the last good commit a module came to a node: "nodes/web-1.json", "groups/web.json". */
async function placedBy(deps: AnswerDeps, node: string, module: string): Promise<string[]> {
  const { goodCommit } = await readCatalogueState(deps.inventory.db);
  if (goodCommit === null) return [];
  const read = await deps.reader.read(goodCommit).catch(() => null);
  if (!read?.ok) return [];
  const { nodes, groups } = read.catalogue;
  const own = nodes.get(node);
  if (!own) return [];
  const matches = (rule: Record<string, string[]>) =>
    Object.entries(rule).every(
      ([key, values]) => own.labels[key] !== undefined && values.includes(own.labels[key]),
    );
  const by = own.modules.includes(module) ? [`nodes/${node}.json`] : [];
  for (const [name, group] of groups) {
    const excepted = Object.keys(group.except).length > 0 && matches(group.except);
    if (group.modules.includes(module) && matches(group.match) && !excepted) by.push(`groups/${name}.json`);
  }
  return by;
}
