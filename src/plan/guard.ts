import type { MeshFile } from "../catalogue/schema/mesh.ts";
import { finish, type Work } from "../composition/slices.ts";
import { above } from "./batches.ts";
import type { GuardHit } from "./model.ts";
import { few } from "./reasons.ts";

const REMOVALS_AT_LEAST = 5;
const RUNNING_AT_LEAST = 10;

/** What the guard reads of a declaration's body; a DeclarationBody is one. */
export interface GuardBody {
  resources: ReadonlyArray<{
    id: string;
    type: string;
    digest: string;
    takes: readonly string[];
    run?: "service" | "once";
  }>;
}

export interface GuardNode<B extends GuardBody = GuardBody> {
  node: string;
  /** What the node was last sent; null: nothing yet. */
  before: B | null;
  /** What the plan's last tier gives it. The same object as `before` where nothing changes. */
  after: B;
  /** What the node was sent before the base plan; null: nothing. Left out: not known, and nothing counts as an undoing. */
  beforeBase?: B | null;
}

/** A node that stays as it is, told without its body: it counts for the shares only. */
export interface UnchangedNode {
  node: string;
  ids: readonly string[];
  /** How many of them run. */
  running: number;
}

export interface GuardInput<B extends GuardBody = GuardBody> {
  /** Every node of the new commit, also those that do not change: shares are of all that is there. Released nodes are not in it. */
  nodes: Iterable<GuardNode<B> | UnchangedNode>;
  settings: MeshFile["guard"];
  /** The plan's base is an ancestor of its commit (true where there is no base). */
  descends: boolean;
  commit: string;
  base: string | null;
  /** `diffBodies` of composition. */
  diff: (before: B | null, after: B) => ReadonlyArray<{ id: string; change: string }>;
}

interface Tally {
  emptied: Array<{ node: string; resources: number; undo: boolean }>;
  ids: Set<string>;
  removed: Map<string, { undo: boolean }>;
  running: number;
  restarts: number;
  restartsUndo: boolean;
  /** Somewhere something comes that was not there before the base plan either: the merge does more than undo. */
  adds: boolean;
}

/**
 * What a merge does that waits for a yes (DESIGN: plan, Guard). Pure. An id is `<module>.<id>`, counted once however many nodes
 * lose it; what a declared resource takes over is moved, not removed. A merge that only undoes what the base plan did hits nothing.
 */
export function guard<B extends GuardBody>(input: GuardInput<B>): GuardHit[] {
  return finish(guarding(input));
}

/** The same as work that can be cut after each node: bodies of ten thousand nodes take seconds to look at. */
export function* guarding<B extends GuardBody>(input: GuardInput<B>): Work<GuardHit[]> {
  const tally = yield* count(input);
  return [...emptied(input, tally), ...removals(input, tally), ...restarts(input, tally), ...history(input)];
}

function* count<B extends GuardBody>(input: GuardInput<B>): Work<Tally> {
  const tally: Tally = {
    emptied: [],
    ids: new Set(),
    removed: new Map(),
    running: 0,
    restarts: 0,
    restartsUndo: true,
    adds: false,
  };
  for (const node of input.nodes) {
    yield;
    if ("ids" in node) {
      for (const id of node.ids) tally.ids.add(id);
      tally.running += node.running;
      continue;
    }
    for (const resource of node.before?.resources ?? []) {
      tally.ids.add(resource.id);
      if (isRunning(resource)) tally.running += 1;
    }
    if (node.before === node.after) continue;
    tally.adds ||= hasNew(node);
    if (node.before === null) continue;
    countEmptied(tally, node);
    countRemoved(tally, node);
    countRestarts(tally, node, input.diff(node.before, node.after));
  }
  return tally;
}

function hasNew({ before, after, beforeBase }: GuardNode): boolean {
  const known = new Set([before, beforeBase].flatMap((body) => body?.resources.map(({ id }) => id) ?? []));
  return after.resources.some(({ id }) => !known.has(id));
}

function countEmptied(tally: Tally, { node, before, after, beforeBase }: GuardNode): void {
  const resources = before?.resources.length ?? 0;
  if (resources === 0 || after.resources.length > 0) return;
  const undo = beforeBase !== undefined && (beforeBase?.resources.length ?? 0) === 0;
  tally.emptied.push({ node, resources, undo });
}

function countRemoved(tally: Tally, { before, after, beforeBase }: GuardNode): void {
  const stays = new Set(after.resources.flatMap((resource) => [resource.id, ...resource.takes]));
  const old = new Set(beforeBase?.resources.map((resource) => resource.id));
  for (const { id } of before?.resources ?? []) {
    if (stays.has(id)) continue;
    const undo = beforeBase !== undefined && !old.has(id);
    tally.removed.set(id, { undo: undo && (tally.removed.get(id)?.undo ?? true) });
  }
}

function countRestarts(
  tally: Tally,
  { before, after, beforeBase }: GuardNode,
  changes: ReadonlyArray<{ id: string; change: string }>,
): void {
  const restarted = new Set(changes.filter(({ change }) => change === "restart").map(({ id }) => id));
  const ran = new Set(before?.resources.filter(isRunning).map((resource) => resource.id));
  const digests = new Map(beforeBase?.resources.map((resource) => [resource.id, resource.digest]));
  for (const { id, digest } of after.resources) {
    if (!restarted.has(id) || !ran.has(id)) continue;
    tally.restarts += 1;
    if (digests.get(id) !== digest) tally.restartsUndo = false;
  }
}

function isRunning(resource: GuardBody["resources"][number]): boolean {
  return resource.type === "container" || (resource.type === "process" && resource.run !== "once");
}

function emptied(input: { settings: MeshFile["guard"] }, tally: Tally): GuardHit[] {
  if (!input.settings.emptied) return [];
  return tally.emptied
    .filter(({ undo }) => !undo || tally.adds)
    .sort((a, b) => (a.node < b.node ? -1 : 1))
    .map(({ node, resources }) => ({
      rule: "emptied" as const,
      detail: `empties ${node} (${resources} resources)`,
      item: `emptied ${node}`,
    }));
}

function removals(input: { settings: MeshFile["guard"] }, { ids, removed, adds }: Tally): GuardHit[] {
  const { count: most, share } = input.settings.removals;
  const n = removed.size;
  const many = n > most || (n >= REMOVALS_AT_LEAST && above(n, share, ids.size));
  if (!many || (!adds && [...removed.values()].every(({ undo }) => undo))) return [];
  const detail = `removes ${n} of ${ids.size} resources (${few([...removed.keys()].sort())})`;
  return [{ rule: "removals", detail, item: `removals ${n}` }];
}

function restarts(input: { settings: MeshFile["guard"] }, tally: Tally): GuardHit[] {
  const { running, restarts: n, restartsUndo, adds } = tally;
  if (running < RUNNING_AT_LEAST || !above(n, input.settings.restarts, running)) return [];
  if (restartsUndo && !adds) return [];
  return [{ rule: "restarts", detail: `restarts ${n} of the ${running} that run`, item: `restarts ${n}` }];
}

function history(input: {
  settings: MeshFile["guard"];
  descends: boolean;
  commit: string;
  base: string | null;
}): GuardHit[] {
  if (!input.settings.history || input.descends) return [];
  const short = (commit: string | null) => (commit ?? "nothing").slice(0, 10);
  const detail = `${short(input.commit)} does not descend from ${short(input.base)}`;
  return [{ rule: "history", detail, item: "history" }];
}
