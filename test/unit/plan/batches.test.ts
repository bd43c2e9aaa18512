import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { above, drawBatches, shareOf } from "../../../src/plan/batches.ts";

describe("drawBatches", () => {
  it.each([
    [[1, "10%", "50%", "100%"], 0, 20, [1, 1, 8, 10]],
    [[1, "10%", "50%", "100%"], 0, 1, [1]],
    [[1, "10%", "50%", "100%"], 0, 2, [1, 1]],
    [[1, "10%", "50%", "100%"], 2, 18, [8, 10]],
    [[5, 2, "1%"], 0, 9, [5, 4]],
    [["34%"], 0, 3, [2, 1]],
    [[1], 0, 0, []],
  ] as const)("draws %j with %i out and %i waiting as %j", (batches, out, waiting, sizes) => {
    expect(drawBatches([...batches], out, waiting)).toEqual(sizes);
  });

  it("takes everybody once, in batches that are never empty, and drawn again says the same of the rest", () => {
    const batch = fc.oneof(
      fc.integer({ min: 1, max: 60 }),
      fc.integer({ min: 0, max: 100 }).map((n) => `${n}%`),
    );
    fc.assert(
      fc.property(
        fc.array(batch, { minLength: 1, maxLength: 5 }),
        fc.nat(50),
        fc.nat(50),
        (batches, out, n) => {
          const sizes = drawBatches(batches, out, n);
          expect(sizes.reduce((a, b) => a + b, 0)).toBe(n);
          expect(sizes.every((size) => size > 0)).toBe(true);
          const [first, ...rest] = sizes;
          if (first !== undefined) expect(drawBatches(batches, out + first, n - first)).toEqual(rest);
        },
      ),
    );
  });
});

describe("shares", () => {
  it("round up, and are above only when they are", () => {
    expect(shareOf("10%", 1)).toBe(1);
    expect(shareOf("50%", 5)).toBe(3);
    expect(above(12, "20%", 60)).toBe(false);
    expect(above(13, "20%", 60)).toBe(true);
  });
});
