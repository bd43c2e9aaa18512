import { expect, it } from "vitest";
import { watchSteps } from "../../../src/plan/steps.ts";

it("tells of a step of the wall clock in either direction, and not of time that passes", () => {
  let wall = 1_000_000;
  let mono = 5;
  const stepped = watchSteps({ now: () => wall, monotonic: () => mono });
  const pass = (ms: number) => {
    wall += ms;
    mono += ms;
  };
  pass(3_600_000);
  expect(stepped()).toBeNull();
  wall += 2_000;
  const first = stepped();
  expect(first).toBe(new Date(wall).toISOString());
  pass(60_000);
  expect(stepped()).toBe(first);
  wall -= 5_000;
  expect(stepped()).toBe(new Date(wall).toISOString());
});
