import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  afterEnd,
  backoff,
  type End,
  freshPolicy,
  type PolicyState,
  steadied,
} from "../../../src/host/supervision/policy.ts";

const restart = { first: 1_000, max: 60_000, resetAfter: 60_000, rollbackAfter: 3, haltAfter: 5 };
const end = (change: Partial<End> = {}): End => ({
  up: 10,
  passing: false,
  previous: false,
  cause: "ended",
  random: 0.5,
  ...change,
});

/** What becomes of a version that always ends the same way, until it halts. */
function history(change: Partial<End>, most = 50): string[] {
  const steps: string[] = [];
  let state: PolicyState = freshPolicy;
  for (let i = 0; i < most; i++) {
    const next = afterEnd(restart, state, end(change), 0);
    steps.push(next.do === "start" ? `start ${next.delay}` : next.do);
    state = next.policy;
    if (next.do === "halt") break;
  }
  return steps;
}

describe("what follows the end of a service", () => {
  it("a first version that always ends at once backs off, doubling, and halts", () => {
    expect(history({})).toEqual(["start 1000", "start 2000", "start 4000", "start 8000", "halt"]);
  });

  it("a new version is rolled back after three failures, and halts after five on the one before", () => {
    expect(history({ previous: true })).toEqual([
      "start 1000",
      "start 2000",
      "roll-back",
      "start 1000",
      "start 2000",
      "start 4000",
      "start 8000",
      "halt",
    ]);
  });

  it("one that was up and passing for resetAfter is started at once, for ever", () => {
    expect(new Set(history({ up: 60_000, passing: true }))).toEqual(new Set(["start 0"]));
  });

  it("one that was up long but never passed is started at once and still halts", () => {
    expect(history({ up: 60_000 })).toEqual(["start 0", "start 0", "start 0", "start 0", "halt"]);
  });

  it.each(["unhealthy", "host"] as const)("an end by %s neither counts nor halts", (cause) => {
    expect(history({ cause, previous: true })).toEqual(Array(50).fill("start 1000"));
  });

  it("a reboot is nobody's fault", () => {
    const state = { ...freshPolicy, failures: 4 };
    expect(afterEnd(restart, state, end({ cause: "reboot" }), 7)).toEqual({
      do: "start",
      delay: 0,
      policy: { ...state, restarts: 1, due: 7 },
    });
  });

  it("the count goes once it is steady", () => {
    expect(steadied({ ...freshPolicy, failures: 2 }).failures).toBe(0);
  });

  it("a backoff is within 25% of first doubled, and of max", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 100 }),
        fc.double({ min: 0, max: 1, noNaN: true }),
        (failures, random) => {
          const base = Math.min(60_000, 1_000 * 2 ** (failures - 1));
          const ms = backoff(restart, failures, random);
          return ms >= Math.floor(base * 0.75) && ms <= Math.ceil(base * 1.25);
        },
      ),
    );
  });

  it("whatever ends how, a version that keeps ending early halts, and restarts never go down", () => {
    const ends = fc.array(
      fc.record({
        up: fc.nat(59_999),
        passing: fc.boolean(),
        random: fc.double({ min: 0, max: 1, noNaN: true }),
      }),
      { minLength: 8, maxLength: 8 },
    );
    fc.assert(
      fc.property(ends, fc.boolean(), (list, previous) => {
        let state: PolicyState = freshPolicy;
        for (const each of list) {
          const next = afterEnd(restart, state, end({ ...each, previous }), 0);
          expect(next.policy.restarts).toBeGreaterThanOrEqual(state.restarts);
          state = next.policy;
          if (next.do === "halt") return;
        }
        expect(state.halted).toBe(true);
      }),
    );
  });
});
