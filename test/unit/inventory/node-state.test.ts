import { describe, expect, test } from "vitest";
import { type NodeStatus, nodeState, type StateFacts } from "../../../src/inventory/node-state.ts";
import type { NodeRow } from "../../../src/inventory/nodes.ts";

const NOW = Date.parse("2026-01-01T12:00:00.000Z");
const ago = (seconds: number) => new Date(NOW - seconds * 1_000).toISOString();
const FACTS: StateFacts = { now: NOW, heartbeat: 30_000, connectedAt: ago(3_600) };

type Outcome = NonNullable<NodeRow["report"]>["outcome"];

function reported(outcome: Outcome, over: Partial<NonNullable<NodeRow["report"]>> = {}): NodeRow["report"] {
  const report = { hostStart: "s", number: 1, at: ago(1), sequence: 3, revision: "r3", commit: "c" };
  return { ...report, outcome, error: null, progress: "s/1", handovers: [], ...over };
}

function aNode(over: Partial<NodeRow> = {}): NodeRow {
  return {
    name: "web-1",
    declared: true,
    address: "10.0.0.1",
    labels: {},
    mode: "enforce",
    retire: false,
    releasedAt: null,
    retiredAt: null,
    wantedSequence: 3,
    publishedSequence: 3,
    wantedRevision: "r3",
    wantedCommit: "c",
    wantedTier: 2,
    frozen: null,
    seenAt: ago(1),
    report: reported("applied"),
    ...over,
  };
}

const FROZEN = { reason: "x", by: "me", since: ago(9) };

describe("the state of a node is the first that holds", () => {
  test.each<[string, NodeStatus, Partial<NodeRow>]>([
    ["applied what it is wanted to hold", "converged", {}],
    [
      "retired, though silent and frozen",
      "retired",
      { retiredAt: ago(9), seenAt: ago(9_999), frozen: FROZEN },
    ],
    ["no longer declared, though silent", "released", { declared: false, seenAt: ago(9_999) }],
    ["never declared", "orphaned", { declared: null, wantedSequence: 0, wantedRevision: null }],
    ["frozen, though failed", "frozen", { frozen: FROZEN, report: reported("failed") }],
    ["silent for three heartbeats", "offline", { seenAt: ago(90) }],
    ["silent for less", "converged", { seenAt: ago(89) }],
    ["never heard", "offline", { seenAt: null, report: null }],
    ["refused", "refused", { report: reported("refused", { sequence: 2 }) }],
    ["failed at what it is wanted to hold", "failed", { report: reported("failed") }],
    [
      "failed at what it held before",
      "applying",
      { report: reported("failed", { sequence: 2, revision: "r2" }) },
    ],
    ["at work", "applying", { report: reported("applying") }],
    [
      "applied what it held before",
      "applying",
      { report: reported("applied", { sequence: 2, revision: "r2" }) },
    ],
    ["retrying a failure", "waiting", { report: reported("waiting") }],
    [
      "declared, heard, not sent anything yet",
      "waiting",
      { wantedSequence: 0, wantedRevision: null, report: null },
    ],
    ["observed", "observed", { report: reported("observed") }],
  ])("%s: %s", (_, state, over) => {
    expect(nodeState(aNode(over), FACTS)).toBe(state);
  });

  test("nobody is offline until the controller has listened for three heartbeats", () => {
    const silent = aNode({ seenAt: ago(9_999) });
    expect(nodeState(silent, { ...FACTS, connectedAt: ago(89) })).toBe("converged");
    expect(nodeState(silent, { ...FACTS, connectedAt: null })).toBe("converged");
    expect(nodeState(silent, { ...FACTS, connectedAt: ago(90) })).toBe("offline");
  });
});
