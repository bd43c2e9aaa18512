import { describe, expect, it } from "vitest";
import { diffBodies } from "../../../src/composition/diff.ts";
import { aFile, aProcess, bodyOf } from "./support.ts";

const body = (...resources: unknown[]) =>
  bodyOf({ nodes: { a: { modules: ["m"] } }, modules: { m: { resources } } }, "a");

describe("the difference of two declarations", () => {
  it("is nothing between equals, and adds everything to nothing", () => {
    const one = body(aFile("f", "/f"));
    expect(diffBodies(one, one)).toEqual([]);
    expect(diffBodies(null, one)).toEqual([{ id: "m.f", change: "add", fields: [] }]);
    expect(diffBodies(one, body())).toEqual([{ id: "m.f", change: "remove", fields: [] }]);
  });

  it("names the fields that differ, and the restart that a changed file causes", () => {
    const before = body(aFile("f", "/f", "1"), aProcess("p", { restartOn: ["f"] }));
    const after = body(aFile("f", "/f", "2", { mode: "0600" }), aProcess("p", { restartOn: ["f"] }));
    expect(diffBodies(before, after)).toEqual([
      { id: "m.f", change: "update", fields: ["body", "mode"] },
      { id: "m.p", change: "restart", fields: ["restartOn"] },
    ]);
  });

  it("tells a reload from a restart, and a policy from both", () => {
    const of = (content: string, more = {}) =>
      body(aFile("f", "/f", content), aProcess("p", { reloadOn: ["f"], ...more }));
    expect(diffBodies(of("1"), of("2"))[1]).toEqual({ id: "m.p", change: "reload", fields: ["reloadOn"] });
    expect(diffBodies(of("1"), of("1", { stop: { grace: "1s" } }))).toEqual([
      { id: "m.p", change: "update", fields: ["stop"] },
    ]);
    expect(diffBodies(of("1"), of("1", { env: { A: "1" } }))).toEqual([
      { id: "m.p", change: "restart", fields: ["env"] },
    ]);
  });

  it("counts what takes over an old one's place as that one changed", () => {
    const before = body(aFile("old", "/f", "1"));
    const after = body(aFile("new", "/f", "1"));
    after.resources[0]!.takes = ["m.old"];
    expect(diffBodies(before, after)).toEqual([{ id: "m.new", change: "update", fields: ["id"] }]);
  });
});
