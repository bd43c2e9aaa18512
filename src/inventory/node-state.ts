import type { NodeRow } from "./nodes.ts";

/** In the order in which they are tried. */
export const NODE_STATES = [
  "retired",
  "released",
  "orphaned",
  "frozen",
  "offline",
  "refused",
  "failed",
  "applying",
  "waiting",
  "observed",
  "converged",
] as const;
export type NodeStatus = (typeof NODE_STATES)[number];

/** What a state depends on beside the node's row. Times ISO, `now` and `heartbeat` in ms. */
export interface StateFacts {
  now: number;
  heartbeat: number;
  /** When the active controller connected to the broker; null: it is not connected, so that nobody is offline. */
  connectedAt: string | null;
}

/** The first state that holds (DESIGN: programs). Pure. */
export function nodeState(node: NodeRow, facts: StateFacts): NodeStatus {
  return NODE_STATES.find((state) => HOLDS[state](node, facts)) ?? "waiting";
}

/** Silent for three heartbeats, and the controller has listened for as long. */
export function isOffline(seenAt: string | null, facts: StateFacts): boolean {
  if (facts.connectedAt === null) return false;
  const silence = 3 * facts.heartbeat;
  if (facts.now - Date.parse(facts.connectedAt) < silence) return false;
  return seenAt === null || facts.now - Date.parse(seenAt) >= silence;
}

const HOLDS: { [S in NodeStatus]: (node: NodeRow, facts: StateFacts) => boolean } = {
  retired: (node) => node.retiredAt !== null,
  released: (node) => node.declared === false,
  orphaned: (node) => node.declared === null,
  frozen: (node) => node.frozen !== null,
  offline: (node, facts) => isOffline(node.seenAt, facts),
  refused: (node) => node.report?.outcome === "refused",
  failed: (node) => isCurrent(node) && node.report?.outcome === "failed",
  applying: (node) => (node.wantedSequence > 0 && !isCurrent(node)) || node.report?.outcome === "applying",
  waiting: (node) => !isSettled(node),
  observed: (node) => node.report?.outcome === "observed",
  converged: () => true,
};

/** Its newest report is about what it is wanted to hold. */
function isCurrent({ report, wantedSequence, wantedRevision }: NodeRow): boolean {
  return report !== null && report.sequence >= wantedSequence && report.revision === wantedRevision;
}

function isSettled(node: NodeRow): boolean {
  const outcome = node.report?.outcome;
  return node.wantedSequence > 0 && (outcome === "applied" || outcome === "observed");
}
