import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { readEvents } from "../../../src/inventory/events.ts";
import { recordHeartbeats } from "../../../src/inventory/heartbeats.ts";
import { readNodeDetail, readNodes } from "../../../src/inventory/nodes.ts";
import { NotActive, withEpoch } from "../../../src/inventory/plan-lock.ts";
import { readPosition } from "../../../src/inventory/positions.ts";
import { foldReports, readRejected } from "../../../src/inventory/reports.ts";
import { raiseSequences, readUnpublished } from "../../../src/inventory/sending.ts";
import type { Report } from "../../../src/report/schema.ts";
import { aMerge, anInventory, aReport } from "../../support/inventory.ts";

describe("folding reports", () => {
  let at: Awaited<ReturnType<typeof anInventory>>;
  let seq = 0;
  beforeAll(async () => {
    at = await anInventory();
  });
  afterAll(() => at.done());

  const foldAll = (...data: unknown[]) =>
    withEpoch(at.inventory, at.epoch, (tx) => {
      const messages = data.map((one) => ({ seq: ++seq, data: one }));
      return foldReports(tx, messages, { stream: "EVENTS", created: "t1", seq });
    });
  const event = (detail: string): Report["events"][number] => ({
    at: "2026-01-01T00:00:00.000Z",
    kind: "note",
    resource: null,
    detail,
  });
  const eventsOf = async (node: string) =>
    (await readEvents(at.inventory.db, { node })).events.map(({ detail }) => detail);

  test("the same report twice, and an older one late, change nothing but keep their events once", async () => {
    const one = aReport({ node: "a", number: 1, outcome: "applying", events: [event("one")] });
    const two = aReport({ node: "a", number: 2, events: [event("two")] });
    expect((await foldAll(two)).folded).toMatchObject([
      { node: "a", outcome: "applied", outcomeBefore: null },
    ]);
    expect((await foldAll(two, one, one)).folded).toEqual([]);
    expect((await readNodes(at.inventory.db, ["a"]))[0]!.report).toMatchObject({
      number: 2,
      outcome: "applied",
    });
    expect((await eventsOf("a")).sort()).toEqual(["one", "two"]);
  });

  test("a new start of the host wins with number 1", async () => {
    await foldAll(aReport({ node: "b", number: 9 }));
    await foldAll(aReport({ node: "b", number: 1, hostStart: "2026-01-02T00:00:00.000Z-zzzz" }));
    expect((await readNodes(at.inventory.db, ["b"]))[0]!.report).toMatchObject({ number: 1 });
  });

  test("only what moved asks for plan work", async () => {
    const first = aReport({ node: "c", number: 1, outcome: "applying" });
    expect(await foldAll(first)).toMatchObject({ matters: true });
    const progress = (await readNodes(at.inventory.db, ["c"]))[0]!.report!.progress;
    expect(await foldAll({ ...first, number: 2 })).toMatchObject({ matters: false });
    expect((await readNodes(at.inventory.db, ["c"]))[0]!.report!.progress).toBe(progress);
    expect(await foldAll({ ...first, number: 3, outcome: "applied" })).toMatchObject({
      matters: true,
      folded: [{ outcomeBefore: "applying", outcome: "applied" }],
    });
  });

  test("PLN-4: a zero byte and a lone surrogate are replaced, and later reports still arrive", async () => {
    const text = "nul \u0000 lone \ud800 pair \u{1f600} escaped \\u0000 end";
    const resource = {
      id: "m.p",
      type: "process",
      state: "failed",
      error: text,
      note: null,
      last: [text],
      process: null,
    };
    const bad = aReport({
      node: "d",
      error: text,
      resources: [resource as Report["resources"][number]],
      events: [event(text)],
    });
    expect(await foldAll(bad)).toMatchObject({ rejected: 0 });
    expect(await foldAll(aReport({ node: "d", number: 2, events: [event("after")] }))).toMatchObject({
      rejected: 0,
    });
    const kept = "nul \ufffd lone \ufffd pair \u{1f600} escaped \\u0000 end";
    expect(await eventsOf("d")).toEqual([kept, "after"]);
    await foldAll({ ...bad, number: 3 });
    const detail = (await readNodeDetail(at.inventory.db, "d")).report as Report;
    expect(detail.resources[0]!.error).toBe(kept);
  });

  test("PLN-4: what is no report, or cannot be stored, is set aside with the reason and the stream goes on", async () => {
    const result = await foldAll(
      "\u0000not json",
      { node: "e", format: 2 },
      null,
      aReport({ node: "e", events: [{ ...event("x"), at: "not a time" }] }),
      aReport({ node: "f" }),
    );
    expect(result).toMatchObject({ rejected: 4, folded: [{ node: "f" }] });
    expect((await readRejected(at.inventory.db))[0]).toMatchObject({ stream: "EVENTS", node: "e" });
    expect(await readPosition(at.inventory.db, "EVENTS")).toEqual({ stream: "EVENTS", created: "t1", seq });
  });

  test("a thousand reports take a handful of statements", async () => {
    const reports = Array.from({ length: 1_000 }, (_, n) =>
      aReport({ node: `many-${n}`, events: [event("e")] }),
    );
    let statements = 0;
    const result = await withEpoch(at.inventory, at.epoch, (tx) => {
      const counting = {
        ...tx,
        query: ((text: string, values?: unknown[]) => {
          statements++;
          return tx.query(text, values);
        }) as typeof tx.query,
      };
      const messages = reports.map((data) => ({ seq: ++seq, data }));
      return foldReports(counting, messages, { stream: "EVENTS", created: "t1", seq });
    });
    expect(result.folded).toHaveLength(1_000);
    expect(statements).toBeLessThan(10);
  });

  test("a fold of an epoch that is over changes nothing", async () => {
    const late = withEpoch(at.inventory, at.epoch + 7, (tx) =>
      foldReports(tx, [{ seq: 1, data: aReport({ node: "late" }) }], { stream: "S", created: "t", seq: 1 }),
    );
    await expect(late).rejects.toThrow(NotActive);
    expect(await readNodes(at.inventory.db, ["late"])).toEqual([]);
    expect(await recordHeartbeats(at.inventory.db, at.epoch + 7, [{ node: "late", sequence: 1 }])).toEqual(
      [],
    );
    expect(await readNodes(at.inventory.db, ["late"])).toEqual([]);
  });

  test("a stream made anew is folded from its start", async () => {
    await withEpoch(at.inventory, at.epoch, (tx) =>
      foldReports(tx, [], { stream: "T", created: "old", seq: 40 }),
    );
    await withEpoch(at.inventory, at.epoch, (tx) =>
      foldReports(tx, [], { stream: "T", created: "old", seq: 7 }),
    );
    expect((await readPosition(at.inventory.db, "T"))!.seq).toBe(40);
    await withEpoch(at.inventory, at.epoch, (tx) =>
      foldReports(tx, [], { stream: "T", created: "new", seq: 7 }),
    );
    expect((await readPosition(at.inventory.db, "T"))!.seq).toBe(7);
  });

  test("a host or key that holds a higher sequence than a restored store knows raises it, and it is sent again", async () => {
    await aMerge(at, "c1", ["r"]);
    await at.inventory.db.query(
      "UPDATE mesh.nodes SET wanted_seq = 3, published_seq = 3, wanted_revision = 'c1/r', wanted_commit = 'c1', wanted_tier = 2 WHERE name = 'r'",
    );
    expect(await readUnpublished(at.inventory.db, 10)).toEqual([]);
    expect(await foldAll(aReport({ node: "r", sequence: 8, revision: "x" }))).toMatchObject({
      raised: ["r"],
    });
    expect(await readUnpublished(at.inventory.db, 10)).toMatchObject([
      { node: "r", sequence: 9, revision: "c1/r" },
    ]);
    expect(await raiseSequences(at.inventory.db, [{ node: "r", sequence: 20 }])).toEqual(["r"]);
    expect(await readUnpublished(at.inventory.db, 10)).toMatchObject([{ node: "r", sequence: 21 }]);
    expect(await recordHeartbeats(at.inventory.db, at.epoch, [{ node: "r", sequence: 30 }])).toEqual([
      { node: "r", sequence: 30 },
    ]);
  });
});
