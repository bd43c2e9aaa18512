import { expect, test } from "vitest";
import { labelsOf } from "../../../src/cli/commands/nodes.ts";
import { endOf, planText } from "../../../src/cli/commands/plan.ts";
import { converged, statusText } from "../../../src/cli/commands/status.ts";
import { whyText } from "../../../src/cli/commands/why.ts";
import type { PlanDoc, WhyDoc } from "../../../src/cli/documents.ts";
import { outline } from "../../../src/cli/outline.ts";
import { clip } from "../../../src/cli/output.ts";
import { ago, painter, table } from "../../../src/cli/table.ts";
import { statusOf } from "../../support/controller-stub.ts";

const plain = painter(false);
const coloured = painter(true);

test("columns line up whatever is coloured", () => {
  const rows = [
    ["a", coloured("red", "failed"), "x"],
    ["longer", "ok", null],
  ];
  const lines = table(["NAME", "STATE", ""], rows, plain).split("\n");
  expect(lines[0]).toBe("NAME    STATE");
  expect(lines[1]).toBe("a       \x1b[31mfailed\x1b[0m  x");
  expect(lines[2]).toBe("longer  ok      -");
});

test("a line is cut by what is visible of it, and keeps its colours", () => {
  expect(clip("\x1b[31mabcdef\x1b[0m tail", 4)).toBe("\x1b[31mabcd\x1b[0m");
});

test("times are told in the unit a person would use", () => {
  const now = Date.parse("2026-01-02T00:00:00Z");
  expect(ago("2026-01-01T23:59:30Z", now)).toBe("30s");
  expect(ago("2026-01-01T12:00:00Z", now)).toBe("12h");
  expect(ago("2026-01-02T00:00:05Z", now)).toBe("0s");
  expect(ago(null, now)).toBe("-");
});

test("a document without a table is shown as an outline, empty values left out", () => {
  const text = outline({
    node: "web-1",
    error: null,
    requires: [],
    process: { state: "running", pid: 7 },
    last: ["a", "b"],
  });
  expect(text).toBe("node  web-1\nprocess\n  state  running\n  pid    7\nlast  a, b");
});

test.each([
  ["everything converged and the plan done", {}, true],
  ["no plan yet", { plan: null }, false],
  ["a plan of an earlier commit than the newest", { plan: { ...statusOf(1).plan, commit: "a" } }, false],
  ["a plan that is halted", { plan: { ...statusOf(1).plan, state: "halted" } }, false],
  ["a catalogue with problems", { catalogue: { ...statusOf(1).catalogue, problems: [{}] } }, false],
  ["an offline node", { nodes: [{ ...statusOf(1).nodes[0], state: "offline" }] }, false],
  ["a released node", { nodes: [{ ...statusOf(1).nodes[0], state: "released" }] }, true],
])("status --check with %s", (_name, change, expected) => {
  expect(converged(statusOf(1, change) as ReturnType<typeof statusOf>)).toBe(expected);
});

test("a freeze is loud in status", () => {
  const frozen = { reason: "the data centre moves", by: "alice", since: "2026-01-01T00:00:00.000Z" };
  const text = statusText({ ...statusOf(1), frozen }, plain, Date.now());
  expect(text.split("\n")[0]).toBe(
    "FROZEN by alice: the data centre moves. Nothing is sent until `mesh unfreeze`.",
  );
});

const plan = (state: string): PlanDoc => ({
  id: 7,
  commit: "b".repeat(40),
  base: null,
  state,
  reason: null,
  createdAt: "2026-01-01T00:00:00.000Z",
  finishedAt: null,
  tiers: [
    {
      tier: 0,
      state: "rolling-out",
      builds: [],
      nodes: ["a", "b"].map((node, i) => ({
        node,
        batch: i + 1,
        state: i === 0 ? "applied" : "pending",
        revision: "r",
        sentAt: null,
        appliedAt: null,
        error: null,
      })),
    },
  ],
});

test.each([
  ["done", 0],
  ["running", null],
  ["superseded", null],
  ["halted", 3],
  ["waiting", 3],
  ["stopped", 3],
])("plan --wait on a plan that is %s", (state, code) => {
  expect(endOf(plan(state))).toBe(code);
});

test("a plan shows progress per tier", () => {
  expect(planText(plan("running"), plain, Date.now())).toContain(
    "tier 0  rolling-out  ##########..........  1 of 2 applied",
  );
});

test("a label without a value is refused with an example", () => {
  expect(labelsOf(["role=web", "zone="])).toEqual({ role: "web", zone: "" });
  expect(() => labelsOf(["role"])).toThrow("KEY=VALUE");
});

test("why says where a resource comes from and why it is as it is", () => {
  const now = Date.parse("2026-01-02T00:00:00Z");
  const doc: WhyDoc = {
    node: "web-1",
    resource: "web.server",
    state: "failed",
    error: "it ends at once",
    note: null,
    output: ["no such port"],
    process: { state: "halted", pid: null, restarts: 5, since: "2026-01-01T23:59:30Z", exit: "1" },
    nodeState: "failed",
    nodeError: null,
    declared: true,
    placedBy: ["groups/web.json"],
    requires: [],
    requiredBy: ["web.proxy"],
    commit: "f6edcc5bb203008179edc434388ee739db8924a5",
    events: [
      {
        id: 1,
        at: "2026-01-01T23:59:30Z",
        node: "web-1",
        kind: "halted",
        resource: "web.server",
        detail: "5 failures",
      },
    ],
  };
  expect(whyText(doc, plain, now).split("\n")).toEqual([
    "web.server  failed: it ends at once",
    "placed by  groups/web.json",
    "commit     f6edcc5b",
    "needed by  web.proxy",
    "process    halted, for 30s, 5 restarts",
    "last exit  1",
    "node       web-1 is failed",
    "",
    "its last output",
    "  no such port",
    "",
    "AT                    EVENT",
    "2026-01-01T23:59:30Z  halted  5 failures",
  ]);
});
