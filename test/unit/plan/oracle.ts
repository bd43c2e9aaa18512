import { shareOf } from "../../../src/plan/batches.ts";
import { decide } from "../../../src/plan/decide.ts";
import type { Decision, NodeFacts, Plan, PlanNode, Tier } from "../../../src/plan/model.ts";
import { nextWakeAt } from "../../../src/plan/wake.ts";
import { HEARTBEAT, type Merge, type World } from "./world.ts";

type Outcome = NonNullable<NodeFacts["reported"]>["outcome"];

/**
 * Watches a world from outside, by what hosts really said and when they were really heard, and throws where a run of decide
 * breaks one of the promises of DESIGN (plan). It shares no code with decide beyond the rounding of a share.
 */
export class Oracle {
  /** When (true time) the host of "tier node" first said that it applied what the newest plan, or a later tier of it, sent. */
  private applied = new Map<string, number>();
  private failing = new Set<string>();
  private backAt = Number.NEGATIVE_INFINITY;
  private connectedTrue = Number.NEGATIVE_INFINITY;
  private disturbedAt = Number.NEGATIVE_INFINITY;
  /** Since when (true time) "tier node" is `sent` without a further report. */
  private waitedFor = new Map<string, number>();

  private readonly world: World;

  constructor(world: World) {
    this.world = world;
  }

  merge(merge: Merge): void {
    const { world } = this;
    const old = world.plans.at(-1);
    world.merge(merge);
    this.applied = new Map();
    this.waitedFor = new Map();
    this.failing = new Set(
      [...world.machines.values()]
        .filter(({ facts }) => facts.reported?.outcome === "failed")
        .map(({ facts }) => facts.node),
    );
    if (!old) return;
    const { plan, release, asks } = decide(old, world.facts(world.plan.id), world.now);
    check(release.length === 0 && asks.length === 0, "a superseded plan sends or asks");
    check(plan.state === (old.state === "done" ? "done" : "superseded"), "an old plan is not superseded");
    world.plans[world.plans.length - 2] = plan;
  }

  stepped(ms: number): void {
    if (ms < 0) this.backAt = this.world.trueNow;
    this.disturbed();
  }

  /** The controller connected. */
  connected(): void {
    this.connectedTrue = this.world.trueNow;
    this.disturbed();
  }

  /** From here on everybody is listened to anew. */
  disturbed(): void {
    this.disturbedAt = this.world.trueNow;
  }

  report(name: string, outcome: Outcome): void {
    const { world } = this;
    if (!world.machines.has(name) || !world.report(name, outcome, outcome === "failed" ? "exit 1" : null))
      return;
    for (const { tier } of world.plan.tiers) this.waitedFor.delete(`${tier} ${name}`);
    const { reported } = world.machine(name).facts;
    if (outcome !== "applied" || !reported) return;
    const held = world.plan.tiers.findLast(({ nodes }) =>
      nodes.some((n) => n.node === name && n.released && n.revision === reported.revision),
    );
    if (!held) return;
    this.failing.delete(name);
    for (const { tier } of world.plan.tiers) {
      const key = `${tier} ${name}`;
      if (tier <= held.tier && !this.applied.has(key)) this.applied.set(key, world.trueNow);
    }
  }

  work(): void {
    const { world } = this;
    const before = world.plan;
    const decision = world.work();
    this.sequences(decision);
    this.held(before, decision);
    this.tiers(before, decision.plan);
    this.batches(before, decision);
    this.says(decision);
    this.patience(before, decision.plan);
    this.olderPlans();
    this.twice();
  }

  /** The state is the same when anything is delivered twice. */
  private twice(): void {
    const { world } = this;
    const again = decide(world.plan, world.facts(), world.now);
    check(again.release.length === 0 && again.asks.length === 0, "the same again releases or asks once more");
    check(same(again.plan, world.plan), "the same again changes the plan");
  }

  private olderPlans(): void {
    const { world } = this;
    for (const old of world.plans.slice(-3, -1)) {
      const { release, asks } = decide(old, world.facts(world.plan.id), world.now);
      check(release.length === 0 && asks.length === 0, "an older plan sends or asks");
    }
  }

  private sequences({ release }: Decision): void {
    check(
      new Set(release.map(({ node }) => node)).size === release.length,
      "a node is released twice at once",
    );
    for (const { node, sequence } of release) {
      const { sent, facts } = this.world.machine(node);
      const others = [...sent.slice(0, -1), facts.reported?.sequence ?? 0];
      check(
        others.every((other) => other < sequence),
        `${node} gets sequence ${sequence}, not above ${others}`,
      );
    }
  }

  /** What may not send at all, and to whom nothing is sent. */
  private held(before: Plan, { plan, release, asks }: Decision): void {
    const { world } = this;
    const nothing = (why: string) => check(release.length === 0 && asks.length === 0, `${why} sends or asks`);
    if (before.stopped) nothing("a stopped plan");
    if (world.frozen) nothing("a frozen mesh");
    if (plan.guard.hits.length > 0 && !plan.guard.confirmed) nothing("a plan that the guard holds");
    if (plan.state === "superseded") nothing("a superseded plan");
    const heldBack = (name: string) =>
      plan.state === "done" && this.entries(before, name).some(({ node }) => !node.released);
    if (world.connectedAt === null) {
      const sent = release.filter(
        ({ node }) => !this.isObserved(node) && !this.wasSent(before, node) && !heldBack(node),
      );
      check(
        sent.length === 0 || this.onlyHeldBack(before, release),
        "sends while the broker cannot be reached",
      );
    }
    for (const { node } of release) check(!world.machine(node).facts.frozen, `${node} is frozen and is sent`);
    for (const { node, tier } of release) {
      const first =
        plan.tiers[tier].state !== "done" && !this.wasSent(before, node) && !this.isObserved(node);
      check(!first || !this.trulySilent(node) || this.backSince(node), `${node} is silent and in a batch`);
    }
    const max = plan.rollout.maxFailures;
    if (this.failedNow(before) > max && before.state !== "done") {
      const resent = release.every(({ node }) => this.wasSent(before, node));
      check(resent && asks.length === 0, "goes past a batch that failed");
    }
  }

  private onlyHeldBack(before: Plan, release: Decision["release"]): boolean {
    return release.every(({ tier }) => before.tiers[tier].state === "done");
  }

  /** Distinct nodes that say of what this plan sent them that it failed. */
  private failedNow(before: Plan): number {
    return [...this.world.machines.values()].filter(({ facts }) => {
      const entries = this.entries(before, facts.node).filter(({ node }) => node.released);
      const latest = entries.at(-1)?.node;
      const { reported, frozen, observed } = facts;
      if (!latest || !reported || frozen || observed || this.failing.has(facts.node) || latest.resend)
        return false;
      const about = reported.sequence >= (latest.sequence ?? 0);
      if (entries.some(({ node }) => node.skip && node.state !== "applied")) return false;
      if (reported.outcome === "refused") return about;
      return about && reported.revision === latest.revision && reported.outcome === "failed";
    }).length;
  }

  /** A tier is done only when the one before is, and only with every node accounted for. */
  private tiers(before: Plan, plan: Plan): void {
    for (const tier of plan.tiers) {
      const over = tier.state === "done" || tier.state === "skipped";
      const started = tier.nodes.some(({ node, released }) => released && !this.isObserved(node));
      const earlier = plan.tiers.slice(0, tier.tier);
      if (started || over) {
        const through = earlier.every(({ state }) => state === "done" || state === "skipped");
        check(through || tier.nodes.length + tier.builds.length === 0, `tier ${tier.tier} starts too early`);
      }
      if (tier.state === "done" && before.tiers[tier.tier].state !== "done") this.through(plan, tier);
    }
  }

  private through(plan: Plan, tier: Tier): void {
    check(
      tier.builds.every(({ state }) => state === "done" || state === "cached"),
      "done before its builds",
    );
    const counted = tier.nodes.filter((node) => node.state !== "skipped");
    for (const node of tier.nodes) if (node.state === "skipped") this.reallySkipped(node);
    for (const node of counted) this.accounted(plan, tier, node);
    const shown = counted.filter(({ node }) => this.applied.has(`${tier.tier} ${node}`));
    check(counted.length === 0 || shown.length > 0, `tier ${tier.tier} is done and nobody applied it`);
    const silent = counted.filter(({ state }) => state === "offline").length;
    const most = (Number.parseInt(plan.rollout.maxSilent, 10) * counted.length) / 100;
    check(silent < 5 || silent <= most, "too many are silent");
  }

  private accounted(plan: Plan, tier: Tier, node: PlanNode): void {
    const where = `tier ${tier.tier} is through with ${node.node}`;
    if (node.state === "applied")
      check(this.applied.has(`${tier.tier} ${node.node}`), `${where}, which did not apply`);
    else if (node.state === "offline")
      check(this.trulySilent(node.node), `${where}, called offline and heard`);
    else check(node.state === "failed", `${where}, which is ${node.state}`);
    const failed = new Set(
      plan.tiers
        .flatMap(({ nodes }) => nodes.filter((n) => n.state === "failed" && !n.failedBefore))
        .map((n) => n.node),
    );
    check(failed.size <= plan.rollout.maxFailures, `${where} and more failures than may be`);
    check(!node.failedBefore || this.failing.has(node.node), `${node.node} was not failing before`);
  }

  private reallySkipped({ node, skip }: PlanNode): void {
    const facts = this.world.machines.get(node)?.facts;
    check(
      !facts || facts.observed || facts.frozen || facts.skipped || skip,
      `${node} is skipped for no reason`,
    );
  }

  private trulySilent(node: string): boolean {
    const machine = this.world.machines.get(node);
    if (!machine || machine.facts.frozen) return false;
    const { seenTrue } = machine;
    return seenTrue === null || this.world.trueNow - seenTrue >= 3 * HEARTBEAT;
  }

  /** A next batch goes only when the ones before are accounted for, still answer, and is no larger than it may be. */
  private batches(before: Plan, { plan, release }: Decision): void {
    for (const tier of plan.tiers) {
      const was = before.tiers[tier.tier];
      if (tier.batch <= was.batch || tier.nodes.every(({ state }) => state === "skipped")) continue;
      const earlier = tier.nodes.filter(
        ({ node, state }) => state !== "skipped" && was.nodes.some((n) => n.node === node && n.released),
      );
      for (const node of earlier) {
        this.accounted(plan, tier, node);
        if (node.state === "applied" && node.batch === was.batch) this.stillThere(node.node);
        if (node.state === "applied" && tier.state !== "done") this.soaked(plan, tier, node);
      }
      const unheard = earlier.filter(({ node }) => this.trulySilent(node) && !this.backSince(node));
      const shown = earlier.some(({ node }) => this.applied.has(`${tier.tier} ${node}`));
      check(shown || unheard.length === 0, "silence lets a batch through");
      const fresh = release.filter((r) => r.tier === tier.tier && !this.isObserved(r.node));
      const batch = plan.rollout.batches[0]!;
      if (was.batch === 0 && tier.state !== "done" && fresh.length > 0) {
        const most = typeof batch === "number" ? batch : shareOf(batch, tier.nodes.length);
        check(fresh.length <= most, "the first batch is too large");
      }
      check(tier.batch === was.batch + 1 || tier.state === "done", "a batch is left out");
    }
  }

  private stillThere(node: string): void {
    check(
      !this.trulySilent(node) || this.backSince(node),
      `${node} applied, fell silent, and its batch goes through`,
    );
  }

  private soaked({ rollout }: Plan, { tier }: Tier, { node, appliedAt }: PlanNode): void {
    const first = this.applied.get(`${tier} ${node}`) ?? Number.NEGATIVE_INFINITY;
    check(appliedAt !== null && this.world.trueNow - first >= rollout.soak, `goes on before ${node} soaked`);
  }

  /** The clock went back since it was last heard: what the inventory says of then may look like now. */
  private backSince(node: string): boolean {
    return this.backAt >= (this.world.machines.get(node)?.seenTrue ?? Number.NEGATIVE_INFINITY);
  }

  /** Nobody is called silent too early, and nobody is waited for without end. */
  private patience(before: Plan, plan: Plan): void {
    const { world } = this;
    const early = world.trueNow - this.connectedTrue < 3 * HEARTBEAT;
    for (const tier of plan.tiers) {
      tier.nodes.forEach((node, n) => {
        const key = `${tier.tier} ${node.node}`;
        const was = before.tiers[tier.tier].nodes[n]!;
        const fresh = node.state !== was.state;
        const called =
          node.state === "offline" ? !node.released : (node.error ?? "").startsWith("silent since");
        check(
          !(early && fresh && called),
          `${node.node} is called silent just after the controller connected`,
        );
        if (node.state !== "sent") this.waitedFor.delete(key);
        else if (!this.waitedFor.has(key)) this.waitedFor.set(key, world.trueNow);
        if (node.state !== "sent" || world.connectedAt === null) return;
        const since = Math.max(this.waitedFor.get(key)!, this.disturbedAt);
        const seen = world.machine(node.node).seenTrue ?? since;
        check(world.trueNow - Math.max(since, seen) < 6 * HEARTBEAT, `${node.node} is silent and waited for`);
        const limit = plan.rollout.timeout + 3 * HEARTBEAT;
        check(world.trueNow - since < limit, `${node.node} makes no progress and is waited for`);
      });
    }
  }

  /** Every plan ends or names what it waits for. */
  private says({ plan }: Decision): void {
    const { world } = this;
    if (plan.state === "done") {
      check(plan.finishedAt !== null && plan.reason === null, "done, and not finished");
      check(
        plan.tiers.every(({ state }) => state === "done" || state === "skipped"),
        "done with an open tier",
      );
    } else if (plan.state !== "running") {
      const counted = new Set(
        world.nodes().filter(({ state, node }) => state === "failed" && !this.failing.has(node)),
      );
      const builds = plan.tiers.some((tier) => tier.builds.some(({ state }) => state === "failed"));
      if (plan.state === "halted")
        check(builds || counted.size > plan.rollout.maxFailures, "halted by an old failure");
      check((plan.reason ?? "").includes("mesh"), `${plan.state} and names no way out: ${plan.reason}`);
    } else {
      const sent = world.nodes().some(({ state }) => state === "sent");
      const building = plan.tiers.some(({ state }) => state === "building");
      check(plan.reason !== null || sent || building, "runs and does nothing");
      const woken =
        building || world.connectedAt === null || nextWakeAt(plan, world.facts(), world.now) !== null;
      check(woken, `runs and nothing wakes it: ${plan.reason}`);
    }
  }

  /** At the end nobody is called applied that did not say so. */
  ended(): void {
    for (const tier of this.world.plan.tiers) {
      for (const { node, state } of tier.nodes) {
        if (state === "applied") check(this.applied.has(`${tier.tier} ${node}`), `${node} did not apply`);
      }
    }
  }

  private entries(plan: Plan, name: string): Array<{ tier: Tier; node: PlanNode }> {
    return plan.tiers.flatMap((tier) =>
      tier.nodes.filter(({ node }) => node === name).map((node) => ({ tier, node })),
    );
  }

  private wasSent(plan: Plan, name: string): boolean {
    return this.entries(plan, name).some(({ node }) => node.released);
  }

  private isObserved(name: string): boolean {
    return this.world.machines.get(name)?.facts.observed ?? false;
  }
}

/** Deep equality of JSON; a tenth of the time of the general one, and this runs a million times. */
function same(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return false;
  const [left, right] = [a as Record<string, unknown>, b as Record<string, unknown>];
  const keys = Object.keys(left);
  return keys.length === Object.keys(right).length && keys.every((key) => same(left[key], right[key]));
}

function check(holds: boolean, broken: string): void {
  if (!holds) throw new Error(broken);
}
