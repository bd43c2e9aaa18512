import { MeshFile } from "../../../src/catalogue/schema/mesh.ts";
import { applyCommand } from "../../../src/plan/apply-command.ts";
import { decide } from "../../../src/plan/decide.ts";
import type {
  BuildState,
  Decision,
  GuardHit,
  NodeFacts,
  Plan,
  PlanFacts,
  PlanNode,
  TierNumber,
} from "../../../src/plan/model.ts";
import { type NewBuild, newPlan } from "../../../src/plan/new.ts";

export const HEARTBEAT = 30_000;
export const START = Date.parse("2026-01-01T00:00:00.000Z");

type Outcome = NonNullable<NodeFacts["reported"]>["outcome"];

/** One machine and what the inventory holds of it. `seenTrue`: when it was last heard by a clock that never steps. */
export interface Machine {
  facts: NodeFacts;
  up: boolean;
  seenTrue: number | null;
  sent: number[];
}

export interface Merge {
  touch: Partial<Record<TierNumber, string[]>>;
  builds?: Partial<Record<TierNumber, NewBuild[]>>;
  rollout?: Partial<MeshFile["rollout"]>;
  guard?: GuardHit[];
  message?: string;
  failing?: string[];
}

/** A mesh in memory round `decide`: an inventory that does with a decision what plan work does, and hosts that answer when told. */
export class World {
  /** Wall clock; `trueNow` never steps. */
  now = START;
  trueNow = 0;
  readonly machines = new Map<string, Machine>();
  readonly plans: Plan[] = [];
  frozen: PlanFacts["frozen"] = null;
  connectedAt: string | null;
  steppedAt: string | null = null;
  builds = new Map<
    string,
    { state: BuildState; digest: string | null; ms: number | null; error: string | null }
  >();
  builderThere = true;
  last: Decision | null = null;
  private revision = 0;
  private reports = 0;

  constructor(names: string[], at: { up?: boolean; connectedFor?: number } = {}) {
    this.connectedAt = this.iso(this.now - (at.connectedFor ?? 10 * HEARTBEAT));
    for (const name of names) {
      const up = at.up ?? true;
      this.machines.set(name, {
        up,
        seenTrue: up ? 0 : null,
        sent: [],
        facts: {
          node: name,
          seenAt: up ? this.iso(this.now) : null,
          frozen: false,
          observed: false,
          skipped: false,
          wantedSequence: 0,
          wantedRevision: null,
          reported: null,
        },
      });
    }
  }

  get plan(): Plan {
    return this.plans.at(-1)!;
  }

  iso(ms: number): string {
    return new Date(ms).toISOString();
  }

  machine(name: string): Machine {
    return this.machines.get(name)!;
  }

  facts(newerPlan: number | null = null): PlanFacts {
    const nodes = new Map([...this.machines].map(([name, { facts }]) => [name, facts]));
    const { frozen, connectedAt, steppedAt, builds, builderThere } = this;
    return { nodes, frozen, newerPlan, connectedAt, steppedAt, builds, builderThere };
  }

  /** A merge whose tiers change these nodes. */
  merge(merge: Merge): Plan {
    const changed = ([0, 1, 2] as const).map((t) => new Set(merge.touch[t] ?? []));
    const nodes = [...this.machines.values()].map(({ facts }) => {
      let now = facts.wantedRevision;
      const revisions = changed.map((set) => {
        if (set.has(facts.node)) now = `r${++this.revision}`;
        return now;
      }) as [string | null, string | null, string | null];
      const failing = facts.reported?.outcome === "failed" || (merge.failing ?? []).includes(facts.node);
      return { node: facts.node, wanted: facts.wantedRevision, revisions, failing };
    });
    const id = this.plans.length + 1;
    const plan = newPlan(
      {
        id,
        commit: `c${id}`,
        subject: "a merge",
        message: merge.message ?? "a merge",
        base: null,
        nodes,
        builds: [merge.builds?.[0] ?? [], merge.builds?.[1] ?? [], merge.builds?.[2] ?? []],
        rollout: { ...MeshFile.parse({}).rollout, ...merge.rollout },
        heartbeatMs: HEARTBEAT,
        guard: merge.guard ?? [],
      },
      this.now,
    );
    this.plans.push(plan);
    return plan;
  }

  /** One run of plan work on the newest plan. */
  work(): Decision {
    const decision = decide(this.plan, this.facts(), this.now);
    this.plans[this.plans.length - 1] = decision.plan;
    for (const release of decision.release) {
      const machine = this.machine(release.node);
      machine.facts = {
        ...machine.facts,
        wantedSequence: release.sequence,
        wantedRevision: release.revision,
      };
      machine.sent.push(release.sequence);
    }
    for (const ask of decision.asks) {
      this.builds.set(ask.key, { state: "waiting", digest: null, ms: null, error: null });
    }
    this.last = decision;
    return decision;
  }

  command(command: "stop" | "retry" | "confirm" | "skip", node: string | null = null): void {
    this.plans[this.plans.length - 1] = applyCommand(this.plan, { command, node, by: "ops" }, this.now);
  }

  /** Time passes; hosts that are up send heartbeats. */
  tick(ms: number): void {
    this.now += ms;
    this.trueNow += ms;
    for (const [name, machine] of this.machines) if (machine.up) this.hear(name);
  }

  /** `told`: the controller noticed, as it does where it ran meanwhile. */
  step(ms: number, told = true): void {
    this.now += ms;
    if (told) this.steppedAt = this.iso(this.now);
  }

  hear(name: string): void {
    const machine = this.machine(name);
    if (this.connectedAt === null) return;
    machine.facts = { ...machine.facts, seenAt: this.iso(this.now) };
    machine.seenTrue = this.trueNow;
  }

  /** The host works on what it is wanted to hold and says so. Nothing where it is down or was sent nothing. */
  report(name: string, outcome: Outcome, error: string | null = null): boolean {
    const machine = this.machine(name);
    const { wantedSequence, wantedRevision, frozen } = machine.facts;
    if (!machine.up || wantedSequence === 0 || frozen || this.frozen || this.connectedAt === null)
      return false;
    // A host takes nothing below what it holds.
    if (wantedSequence < (machine.facts.reported?.sequence ?? 0)) return false;
    const progress = `${++this.reports}`;
    const reported = { sequence: wantedSequence, revision: wantedRevision, outcome, error, progress };
    machine.facts = { ...machine.facts, reported };
    this.hear(name);
    return true;
  }

  set(name: string, facts: Partial<NodeFacts>): void {
    const machine = this.machine(name);
    machine.facts = { ...machine.facts, ...facts };
  }

  /** Work, and let every host that was sent something apply it, until nothing more is sent. */
  settle(rounds = 60): void {
    for (let round = 0; round < rounds; round++) {
      this.work();
      const open = this.nodes().filter(({ state }) => state === "sent");
      if (open.length === 0 && this.last!.release.length === 0) return;
      for (const { node } of open) this.report(node, "applied");
    }
  }

  nodes(tier?: TierNumber): PlanNode[] {
    return this.plan.tiers.filter((t) => tier === undefined || t.tier === tier).flatMap((t) => t.nodes);
  }

  node(name: string, tier: TierNumber = 2): PlanNode {
    return this.nodes(tier).find(({ node }) => node === name)!;
  }

  states(tier: TierNumber = 2): Record<string, string> {
    return Object.fromEntries(this.nodes(tier).map(({ node, state }) => [node, state]));
  }

  released(): string[] {
    return this.last!.release.map(({ node }) => node);
  }
}

export function aMesh(size: number, at: { up?: boolean; connectedFor?: number } = {}): World {
  return new World(
    Array.from({ length: size }, (_, n) => `web-${String(n + 1).padStart(2, "0")}`),
    at,
  );
}

export function all(world: World): string[] {
  return [...world.machines.keys()];
}

export function aBuild(key: string): NewBuild {
  return { module: "web", bundle: key, system: "any", key };
}
