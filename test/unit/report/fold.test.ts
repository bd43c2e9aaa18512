import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { fold } from "../../../src/report/fold.ts";
import type { Report } from "../../../src/report/schema.ts";
import { aReport } from "../../support/inventory.ts";

const reports = fc.array(
  fc
    .record({
      node: fc.constantFrom("a", "b", "c"),
      start: fc.constantFrom("1", "2"),
      number: fc.integer({ min: 1, max: 5 }),
      events: fc.integer({ min: 0, max: 2 }),
    })
    .map(({ node, start, number, events }) =>
      aReport({
        node,
        hostStart: `2026-01-0${start}T00:00:00.000Z-x`,
        number,
        events: Array.from({ length: (events + number) % 3 }, (_, n): Report["events"][number] => ({
          at: "2026-01-01T00:00:00.000Z",
          kind: "note",
          resource: null,
          detail: `${n}`,
        })),
      }),
    ),
);

describe("fold", () => {
  test("order and repetition of reports do not matter to which is newest", () => {
    fc.assert(
      fc.property(reports, fc.array(fc.nat()), (list, picks) => {
        const again = [...list].reverse().concat(list.length ? picks.map((n) => list[n % list.length]!) : []);
        const key = ({ newest }: ReturnType<typeof fold>) =>
          newest.map((r) => [r.node, r.hostStart, r.number]);
        expect(key(fold(again))).toEqual(key(fold(list)));
      }),
    );
  });

  test("every event of every report is there once", () => {
    fc.assert(
      fc.property(reports, (list) => {
        const keys = fold([...list, ...list]).events.map(
          (e) => `${e.node} ${e.hostStart} ${e.number} ${e.place}`,
        );
        expect(new Set(keys).size).toBe(keys.length);
        for (const r of list)
          r.events.forEach((_, place) => {
            expect(keys).toContain(`${r.node} ${r.hostStart} ${r.number} ${place}`);
          });
      }),
    );
  });
});
