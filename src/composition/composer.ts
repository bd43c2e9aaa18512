import type { Catalogue, ModuleVersion, Problem, Refused } from "../catalogue/catalogue.ts";
import { type MeshFile, POLICY_DEFAULTS } from "../catalogue/schema/mesh.ts";
import { canonicalJson } from "../declaration/canonical.ts";
import type { Policies } from "../resources/kind.ts";
import { OFFLINE_SEATS } from "./address.ts";
import { FillMemo } from "./fill-memo.ts";
import { compareText, type Issue, nodeFile, toProblems } from "./issues.ts";
import { type CompiledModule, compileModule } from "./module.ts";
import { ComposedNode, type NodeInputs } from "./node.ts";
import { type Allocation, allocatePorts } from "./ports.ts";
import { Resolver } from "./resolve.ts";
import { heldSeat, isPlaced, seatsFor, unknownSeats } from "./seat-values.ts";
import { type SeatTable, seatTable } from "./seats.ts";
import { type NodeShape, shapeOf } from "./shape.ts";
import { finish, finishInSlices, type Work } from "./slices.ts";
import type { CompositionFacts, MeshView, NodeView, PortTable } from "./view.ts";

export interface Composition {
  nodes: ReadonlyMap<string, ComposedNode>;
  problems: Problem[];
  /** The auto ports in use, by node and `module/port`. */
  ports: PortTable;
  /** The address that each held seat has for nodes that do not hold it themselves. */
  seats: ReadonlyMap<string, string>;
}

export interface Resolution {
  view: MeshView;
  problems: Problem[];
}

interface NodeMemo {
  inputs: NodeInputs;
  composed: ComposedNode;
  issues: Issue[];
}

interface Part {
  view: NodeView;
  shape: NodeShape;
  ports: ReadonlyMap<string, number>;
}

interface PortMemo {
  from: number;
  to: number;
  known: ReadonlyMap<string, number> | undefined;
  allocation: Allocation;
}

const NO_PORTS: Allocation = { ports: new Map(), missing: [] };

/**
 * Composes, and remembers between calls: each module version is compiled once, modules with the same values are filled once,
 * and a node whose inputs are the same keeps its result. What it remembers never changes what it answers.
 */
export class Composer {
  #policiesText = "";
  #policies: Policies = policiesOf(null);
  #compiled = new WeakMap<ModuleVersion, CompiledModule>();
  #shapes = new WeakMap<NodeView, { shape: NodeShape; mixed: boolean }>();
  #nodes = new WeakMap<NodeView, NodeMemo>();
  readonly #ports = new WeakMap<NodeShape, PortMemo>();
  readonly #memo = new FillMemo();
  readonly #resolver = new Resolver((version) => this.compiled(version));

  /** Placement by groups and nodes, and settings. Problems of every module's own manifest are among those it finds. */
  resolve(catalogue: Catalogue): Resolution {
    return finish(this.resolving(catalogue));
  }

  compose(view: MeshView, facts: CompositionFacts): Composition {
    return finish(this.composing(view, facts));
  }

  /** As `compose`, yielding to the event loop at least every `sliceMs` milliseconds (default 10). */
  composeView(view: MeshView, facts: CompositionFacts, sliceMs?: number): Promise<Composition> {
    return finishInSlices(this.composing(view, facts), sliceMs);
  }

  /** As `resolve` then `compose`, yielding to the event loop at least every `sliceMs` milliseconds (default 10). */
  async composeCatalogue(
    catalogue: Catalogue,
    facts: CompositionFacts,
    sliceMs?: number,
  ): Promise<Composition & { view: MeshView }> {
    const { view, problems } = await finishInSlices(this.resolving(catalogue), sliceMs);
    const composition = await finishInSlices(this.composing(view, facts), sliceMs);
    return { ...composition, view, problems: [...problems, ...composition.problems] };
  }

  compiled(version: ModuleVersion): CompiledModule {
    const held = this.#compiled.get(version);
    if (held) return held;
    const compiled = compileModule(version, this.#policies);
    this.#compiled.set(version, compiled);
    return compiled;
  }

  /** A node's shape: order, claims, ports, seats. Held as long as its view is. */
  shape(view: NodeView, mixed: boolean): NodeShape {
    const held = this.#shapes.get(view);
    // A node that a tier does not change is the same object in the mixed catalogue: what is right by the stricter rules is so
    // by the others.
    const serves = held && (held.mixed === mixed || (!held.mixed && held.shape.issues.length === 0));
    if (serves) return held.shape;
    const shape = shapeOf(view, (placed) => this.compiled(placed.version), mixed);
    if (!held || held.mixed) this.#shapes.set(view, { shape, mixed });
    return shape;
  }

  *resolving(catalogue: Catalogue): Work<Resolution> {
    this.#take(catalogue.mesh);
    const issues: Issue[] = [];
    const seats = new Set<string>(Object.keys(OFFLINE_SEATS));
    for (const version of catalogue.modules.values()) {
      const compiled = this.compiled(version);
      issues.push(...compiled.issues);
      for (const [seat] of compiled.seats) seats.add(seat);
      yield;
    }
    const resolved = yield* this.#resolver.run(catalogue);
    issues.push(...resolved.issues);
    for (const version of catalogue.modules.values()) {
      // Where a module is placed, composing its nodes tells the same.
      const wrong = unknownSeats(this.compiled(version), seats);
      if (wrong.length > 0 && !isPlaced(resolved.view, version.name)) issues.push(...wrong);
    }
    return { view: resolved.view, problems: toProblems(issues, catalogue.locate) };
  }

  /** What is wrong with a catalogue, and nothing else: no declaration is made. */
  problems(catalogue: Catalogue, facts: CompositionFacts): Problem[] {
    const { view, problems } = this.resolve(catalogue);
    return [...problems, ...finish(this.composing(view, facts, "problems")).problems];
  }

  /** What is wrong in a refused catalogue beside what refused it, as far as its bad files cannot be the reason. */
  *findingMore({ sound, seats: held }: Refused): Work<Problem[]> {
    this.#take(sound.mesh);
    const issues: Issue[] = [];
    const seats = held && new Set([...Object.keys(OFFLINE_SEATS), ...held]);
    for (const version of sound.modules.values()) {
      const compiled = this.compiled(version);
      issues.push(...compiled.issues, ...(seats ? unknownSeats(compiled, seats) : []));
      yield;
    }
    const { view, issues: placing } = yield* this.#resolver.run(sound);
    issues.push(...placing.filter(({ certain }) => certain));
    for (const node of sortedNodes(view)) {
      issues.push(...this.shape(node, false).issues.filter(({ certain }) => certain));
      yield;
    }
    return toProblems(issues, sound.locate);
  }

  *composing(
    view: MeshView,
    facts: CompositionFacts,
    wanted: "declarations" | "problems" = "declarations",
  ): Work<Composition> {
    this.#take(view.mesh);
    const issues: Issue[] = [];
    const parts: Part[] = [];
    for (const node of sortedNodes(view)) {
      const shape = this.shape(node, view.mixed);
      const { ports, missing } = this.#portsOf(shape, view.mesh.ports, facts.ports.get(node.name));
      for (const pair of missing) issues.push(noPortLeft(node.name, pair, view.mesh.ports));
      parts.push({ view: node, shape, ports });
      yield;
    }
    const table = seatTable(parts, view.mixed);
    issues.push(...table.issues);
    const { check, reconcile, heartbeat } = view.mesh.host;
    const host = { check, reconcile, heartbeat };
    const nodes = new Map<string, ComposedNode>();
    const ports = new Map<string, ReadonlyMap<string, number>>();
    for (const part of parts) {
      const memo = this.#node(part, host, table, facts);
      issues.push(...part.shape.issues, ...memo.issues);
      // Here, where others get their turn between two nodes, rather than at the first look at it.
      if (wanted === "declarations") void memo.composed.revision;
      nodes.set(part.view.name, memo.composed);
      if (part.ports.size > 0) ports.set(part.view.name, part.ports);
      yield;
    }
    return { nodes, problems: toProblems(issues, view.locate), ports, seats: table.first };
  }

  /** A node's auto ports: the same object while its shape and the numbers known are the same. */
  #portsOf(
    shape: NodeShape,
    range: MeshFile["ports"],
    known: ReadonlyMap<string, number> | undefined,
  ): Allocation {
    if (shape.autoPorts.length === 0) return NO_PORTS;
    const held = this.#ports.get(shape);
    const same = held && held.from === range.from && held.to === range.to;
    if (same && sameValues(held.known ?? NO_PORTS.ports, known ?? NO_PORTS.ports)) return held.allocation;
    const allocation = allocatePorts([shape], range, known);
    this.#ports.set(shape, { ...range, known, allocation });
    return allocation;
  }

  #node(part: Part, host: NodeInputs["host"], table: SeatTable, facts: CompositionFacts): NodeMemo {
    const held = this.#nodes.get(part.view);
    const issues: Issue[] = [];
    if (held && isSame(held.inputs, part, host)) {
      const seats = held.inputs.seats;
      const told = (seat: string) => heldSeat(seat, part.view.name, table, facts);
      // Every seat it uses is held by somebody, and says what it said.
      if (part.shape.seatsUsed.every((seat) => seats.has(seat) && seats.get(seat) === told(seat)))
        return held;
    }
    const inputs = { ...part, seats: seatsFor(part, table, facts, issues), host };
    if (held && isSame(held.inputs, part, host) && sameValues(held.inputs.seats, inputs.seats)) {
      return { ...held, issues };
    }
    const memo = { inputs, issues, composed: new ComposedNode(inputs, this.#memo) };
    this.#nodes.set(part.view, memo);
    return memo;
  }

  /** The mesh's policies are part of every process: with others, everything compiled before is void. */
  #take(mesh: MeshFile): void {
    const policies = policiesOf(mesh);
    const text = canonicalJson(policies);
    if (text === this.#policiesText) return;
    this.#policiesText = text;
    this.#policies = policies;
    this.#compiled = new WeakMap();
    this.#shapes = new WeakMap();
    this.#nodes = new WeakMap();
    this.#memo.clear();
    this.#resolver.forget();
  }
}

export function createComposer(): Composer {
  return new Composer();
}

function policiesOf(mesh: MeshFile | null): Policies {
  const host = mesh?.host;
  return {
    restart: { ...POLICY_DEFAULTS.restart, ...host?.restart },
    stop: { ...POLICY_DEFAULTS.stop, ...host?.stop },
    minUp: host?.handover.minUp ?? POLICY_DEFAULTS.handover.minUp,
    checkTimeout: POLICY_DEFAULTS.checkTimeout,
  };
}

function sortedNodes(view: MeshView): NodeView[] {
  return [...view.nodes.values()].sort((a, b) => compareText(a.name, b.name));
}

function noPortLeft(node: string, pair: string, range: MeshFile["ports"]): Issue {
  const message = `node ${node}: no port is left for ${pair} in ${range.from} to ${range.to}; widen "ports" in mesh.json`;
  return { file: nodeFile(node), path: [], message };
}

function isSame(a: NodeInputs, b: Part, host: NodeInputs["host"]): boolean {
  return (
    a.shape === b.shape &&
    sameValues(a.ports, b.ports) &&
    a.host.check === host.check &&
    a.host.reconcile === host.reconcile &&
    a.host.heartbeat === host.heartbeat
  );
}

function sameValues<V>(a: ReadonlyMap<string, V>, b: ReadonlyMap<string, V>): boolean {
  if (a === b) return true;
  if (a.size !== b.size) return false;
  for (const [key, value] of a) if (b.get(key) !== value) return false;
  return true;
}
