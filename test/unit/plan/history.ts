import fc from "fast-check";
import { MeshError } from "../../../src/errors.ts";
import type { NodeFacts } from "../../../src/plan/model.ts";
import { Oracle } from "./oracle.ts";
import { aBuild, type Merge, World } from "./world.ts";

type Outcome = NonNullable<NodeFacts["reported"]>["outcome"];

/** One thing that happens to a mesh. `node` picks a machine by index, modulo their number. */
export type Op =
  | {
      op: "merge";
      masks: [number, number, number];
      builds: number;
      guard: boolean;
      trailer: boolean;
      rollout: number;
    }
  | { op: "tick" | "idle" | "step"; ms: number }
  | { op: "report"; node: number; outcome: Outcome; times: number }
  | { op: "reportAll"; outcome: Outcome }
  | { op: "up" | "down" | "freeze" | "unfreeze" | "gone" | "push" | "ahead"; node: number }
  | { op: "freezeMesh" | "unfreezeMesh" | "restart" | "disconnect" | "connect" | "builder" | "again" }
  | { op: "build"; outcome: "building" | "done" | "failed" }
  | { op: "command"; command: "stop" | "retry" | "confirm" | "skip"; node: number };

export interface History {
  size: number;
  awake: number;
  observed: number;
  ops: Op[];
  /** How the failing nodes come round in the end: by themselves, or by `plans retry`. */
  heal: "self" | "retry";
}

const node = fc.nat(8);
const outcome = fc.constantFrom<Outcome>("applied", "applied", "failed", "applying", "waiting", "refused");
const mask = fc.oneof({ weight: 3, arbitrary: fc.constant(511) }, { weight: 2, arbitrary: fc.nat(511) });
const maybe = fc.oneof({ weight: 2, arbitrary: fc.constant(0) }, { weight: 3, arbitrary: mask });
const merge: fc.Arbitrary<Op> = fc.record({
  op: fc.constant("merge" as const),
  masks: fc.tuple(maybe, maybe, mask),
  builds: fc.oneof({ weight: 4, arbitrary: fc.constant(0) }, { weight: 1, arbitrary: fc.nat(7) }),
  guard: fc.integer({ min: 0, max: 5 }).map((n) => n === 0),
  trailer: fc.boolean(),
  rollout: fc.nat(5),
});
const ms = fc.constantFrom(1_000, 10_000, 31_000, 45_000, 60_000);
const steps = fc.constantFrom(-7_200_000, -600_000, 600_000, 7_200_000);

const op: fc.Arbitrary<Op> = fc.oneof(
  { weight: 14, arbitrary: fc.record({ op: fc.constant("tick" as const), ms }) },
  {
    weight: 14,
    arbitrary: fc.record({
      op: fc.constant("reportAll" as const),
      outcome: fc.constantFrom<Outcome>("applied", "applied", "applied", "applying", "failed"),
    }),
  },
  {
    weight: 14,
    arbitrary: fc.record({
      op: fc.constant("report" as const),
      node,
      outcome,
      times: fc.integer({ min: 1, max: 2 }),
    }),
  },
  { weight: 3, arbitrary: merge },
  { weight: 8, arbitrary: fc.record({ op: fc.constantFrom("up" as const, "down" as const), node }) },
  { weight: 4, arbitrary: fc.record({ op: fc.constantFrom("freeze" as const, "unfreeze" as const), node }) },
  {
    weight: 2,
    arbitrary: fc.record({ op: fc.constantFrom("push" as const, "ahead" as const, "gone" as const), node }),
  },
  { weight: 3, arbitrary: fc.record({ op: fc.constant("step" as const), ms: steps }) },
  { weight: 1, arbitrary: fc.record({ op: fc.constant("idle" as const), ms: fc.constant(400_000) }) },
  {
    weight: 6,
    arbitrary: fc.record({
      op: fc.constantFrom(
        "freezeMesh" as const,
        "unfreezeMesh" as const,
        "restart" as const,
        "disconnect" as const,
        "connect" as const,
        "builder" as const,
        "again" as const,
      ),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      op: fc.constant("build" as const),
      outcome: fc.constantFrom("building" as const, "done" as const, "failed" as const),
    }),
  },
  {
    weight: 5,
    arbitrary: fc.record({
      op: fc.constant("command" as const),
      command: fc.constantFrom(
        "stop" as const,
        "retry" as const,
        "retry" as const,
        "confirm" as const,
        "skip" as const,
      ),
      node,
    }),
  },
);

export const history: fc.Arbitrary<History> = fc.record({
  size: fc.oneof(fc.integer({ min: 1, max: 4 }), fc.integer({ min: 5, max: 9 })),
  awake: fc.oneof({ weight: 3, arbitrary: fc.constant(511) }, { weight: 1, arbitrary: fc.nat(511) }),
  observed: fc.oneof({ weight: 4, arbitrary: fc.constant(0) }, { weight: 1, arbitrary: fc.nat(511) }),
  ops: fc.tuple(merge, fc.array(op, { maxLength: 40, size: "max" })).map(([first, rest]) => [first, ...rest]),
  heal: fc.constantFrom("self" as const, "retry" as const),
});

const ROLLOUTS: ReadonlyArray<Merge["rollout"]> = [
  {},
  { soak: 60_000 },
  { maxFailures: 1 },
  { batches: ["50%", "100%"], maxFailures: 1, maxSilent: "60%" },
  { batches: [2], timeout: 120_000 },
  { batches: ["100%"], soak: 20_000, maxFailures: 2 },
];

/** Plays one history, checking after every run of decide, and then lets everybody come round. */
export function play({ size, awake, observed, ops, heal }: History): void {
  const names = Array.from({ length: size }, (_, n) => `n${n}`);
  const world = new World(names, { up: false });
  names.forEach((name, n) => {
    if (awake & (1 << n)) {
      world.machine(name).up = true;
      world.hear(name);
    }
    if (observed & (1 << n)) world.set(name, { observed: true });
  });
  const oracle = new Oracle(world);
  for (const op of ops) {
    perform(world, oracle, names, op);
    if (op.op !== "idle") oracle.work();
  }
  comeRound(world, oracle, heal);
}

type Perform = {
  [K in Op["op"]]: (world: World, oracle: Oracle, names: string[], op: Extract<Op, { op: K }>) => void;
};

function perform(world: World, oracle: Oracle, names: string[], op: Op): void {
  const act = PERFORM[op.op] as (world: World, oracle: Oracle, names: string[], op: Op) => void;
  act(world, oracle, names, op);
}

const PERFORM = {
  merge: (world, oracle, names, { masks, builds, guard, trailer, rollout }) => {
    const some = (bits: number) => names.filter((name, n) => bits & (1 << n) && world.machines.has(name));
    const id = world.plans.length + 1;
    const asked = (t: number) => (builds & (1 << t) ? [aBuild(`k${id % 3}-${t}`)] : []);
    const hit = { rule: "removals" as const, detail: "removes 34", item: "removals 34" };
    oracle.merge({
      touch: { 0: some(masks[0]), 1: some(masks[1]), 2: some(masks[2]) },
      builds: { 0: asked(0), 1: asked(1), 2: asked(2) },
      guard: guard ? [hit] : [],
      message: trailer ? "x\n\nMesh-Confirm: removals 34" : "x",
      rollout: ROLLOUTS[rollout]!,
    });
  },
  tick: (world, _oracle, _names, { ms }) => {
    world.tick(ms);
    catchUp(world);
  },
  idle: (world, oracle, _names, { ms }) => {
    world.tick(ms);
    oracle.disturbed();
  },
  step: (world, oracle, _names, { ms }) => {
    world.step(ms);
    oracle.stepped(ms);
  },
  report: (_world, oracle, names, { node, outcome, times }) => {
    for (let n = 0; n < times; n++) oracle.report(names[node % names.length]!, outcome);
  },
  reportAll: (_world, oracle, names, { outcome }) => {
    for (const name of names) oracle.report(name, outcome);
  },
  up: (world, _oracle, names, { node }) => {
    const name = names[node % names.length]!;
    if (!world.machines.has(name)) return;
    world.machine(name).up = true;
    world.hear(name);
  },
  down: (world, _oracle, names, { node }) => {
    const machine = world.machines.get(names[node % names.length]!);
    if (machine) machine.up = false;
  },
  freeze: (world, _oracle, names, { node }) => setIf(world, names[node % names.length]!, { frozen: true }),
  unfreeze: (world, _oracle, names, { node }) => setIf(world, names[node % names.length]!, { frozen: false }),
  gone: (world, _oracle, names, { node }) => {
    world.machines.delete(names[node % names.length]!);
  },
  push: (world, _oracle, names, { node }) => push(world, names[node % names.length]!),
  ahead: (world, _oracle, names, { node }) => ahead(world, names[node % names.length]!),
  freezeMesh: (world) => {
    world.frozen = { reason: "", by: "ops" };
  },
  unfreezeMesh: (world) => {
    world.frozen = null;
  },
  restart: (world, oracle) => {
    world.plans.splice(0, world.plans.length, ...JSON.parse(JSON.stringify(world.plans)));
    world.connectedAt = world.iso(world.now);
    world.steppedAt = null;
    oracle.connected();
  },
  disconnect: (world) => {
    world.connectedAt = null;
  },
  connect: (world, oracle) => {
    if (world.connectedAt !== null) return;
    world.connectedAt = world.iso(world.now);
    oracle.connected();
  },
  builder: (world) => {
    world.builderThere = !world.builderThere;
  },
  again: () => {},
  build: (world, _oracle, _names, { outcome }) => finishBuilds(world, outcome),
  command: (world, _oracle, names, { command: name, node }) =>
    command(world, name, name === "skip" ? names[node % names.length]! : null),
} satisfies Perform;

/** Refusals are answers, too. */
function command(
  world: World,
  name: "stop" | "retry" | "confirm" | "skip",
  node: string | null = null,
): void {
  try {
    world.command(name, node);
  } catch (error) {
    if (!(error instanceof MeshError)) throw error;
  }
}

function setIf(world: World, name: string, facts: Partial<NodeFacts>): void {
  if (world.machines.has(name)) world.set(name, facts);
}

/** The inventory sends the same once more: `mesh push`. */
function push(world: World, name: string): void {
  const machine = world.machines.get(name);
  if (!machine || machine.facts.wantedSequence === 0) return;
  const sequence = Math.max(machine.facts.wantedSequence, machine.facts.reported?.sequence ?? 0) + 1;
  world.set(name, { wantedSequence: sequence });
  machine.sent.push(sequence);
}

/** A host knows a higher sequence than the store, which was restored: noticed, and sent again, a little later (`catchUp`). */
function ahead(world: World, name: string): void {
  const machine = world.machines.get(name);
  if (!machine || machine.facts.wantedSequence === 0) return;
  const sequence = machine.facts.wantedSequence + 50;
  world.set(name, {
    reported: { sequence, revision: "lost", outcome: "applied", error: null, progress: "lost" },
  });
}

function catchUp(world: World): void {
  for (const [name, { facts }] of world.machines) {
    if ((facts.reported?.sequence ?? 0) > facts.wantedSequence) push(world, name);
  }
}

function finishBuilds(world: World, state: "building" | "done" | "failed"): void {
  for (const [key, build] of world.builds) {
    if (build.state !== "waiting" && build.state !== "building") continue;
    world.builds.set(key, {
      state,
      digest: state === "done" ? "d" : null,
      ms: 1,
      error: state === "failed" ? "log" : null,
    });
  }
}

/** Everybody answers, every command is given that a reason asks for: the plan ends. */
function comeRound(world: World, oracle: Oracle, heal: History["heal"]): void {
  world.frozen = null;
  world.builderThere = true;
  PERFORM.connect(world, oracle);
  for (const [name, machine] of world.machines) {
    machine.up = true;
    world.set(name, { frozen: false });
  }
  for (let round = 0; round < 150 && world.plan.state !== "done"; round++) {
    world.tick(20_000);
    catchUp(world);
    oracle.work();
    const { plan } = world;
    const failedBuild = plan.tiers.some(({ builds }) => builds.some(({ state }) => state === "failed"));
    if (plan.stopped || failedBuild || (heal === "retry" && round % 10 === 9)) command(world, "retry");
    if (plan.guard.hits.length > 0 && !plan.guard.confirmed) command(world, "confirm");
    finishBuilds(world, "done");
    for (const { node, state } of world.nodes()) {
      if (state === "sent" || (heal === "self" && state === "failed")) oracle.report(node, "applied");
    }
  }
  if (world.plan.state !== "done") {
    throw new Error(`the plan does not end: ${world.plan.state}, ${world.plan.reason}`);
  }
  oracle.ended();
}
