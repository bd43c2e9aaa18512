import { describe, expect, it } from "vitest";
import type { CatalogueParts } from "../../support/catalogue.ts";
import { aFile, bodyOf, composed, problemsOf, resource } from "./support.ts";

const value = (parts: CatalogueParts) => resource(bodyOf(parts, "a"), "m.f", "file").body;
const m = { settings: { s: "default" }, resources: [aFile("f", "/f", "${setting:s}")] };

describe("placement", () => {
  it("places a group's modules where every key matches one of its values and except does not", () => {
    const { nodes } = composed({
      groups: {
        web: { match: { role: ["web", "api"], zone: ["x"] }, except: { name: ["c"] }, modules: ["m"] },
        none: { match: { role: [] }, modules: ["k"] },
      },
      nodes: {
        a: { labels: { role: "web", zone: "x" } },
        b: { labels: { role: "api" } },
        c: { labels: { role: "web", zone: "x", name: "c" } },
      },
      modules: { m, k: {} },
    });
    const placed = [...nodes.values()].map((n) => [n.node, n.body.modules.map((one) => one.name)]);
    expect(placed).toEqual([
      ["a", ["m"]],
      ["b", []],
      ["c", []],
    ]);
  });

  it("gives an empty match to every node", () => {
    const { nodes } = composed({
      groups: { all: { modules: ["m"] } },
      nodes: { a: {}, b: {} },
      modules: { m },
    });
    expect([...nodes.values()].map((n) => n.body.modules.length)).toEqual([1, 1]);
  });

  it("empties a node that retires", () => {
    const { nodes } = composed({ nodes: { a: { modules: ["m"], retire: true } }, modules: { m } });
    expect(nodes.get("a")!.body.resources).toEqual([]);
  });

  it("names node, module and both tiers when what is required is absent or of a higher tier", () => {
    const modules = { low: { tier: 0, requires: ["high"] }, high: { tier: 1 } };
    expect(problemsOf({ nodes: { a: { modules: ["low"] } }, modules })[0]).toMatch(
      /node a: module low \(tier 0\) requires high, which is not on this node/,
    );
    expect(problemsOf({ nodes: { a: { modules: ["low", "high"] } }, modules })[0]).toMatch(
      /node a: module low \(tier 0\) requires high, which is of tier 1/,
    );
    expect(problemsOf({ nodes: { a: { modules: ["high"] } }, modules })).toEqual([]);
  });
});

describe("settings", () => {
  const base = { nodes: { a: { modules: ["m"] } }, modules: { m } };

  it("take the node's value over the group's over the mesh's over the default", () => {
    const mesh = { settings: { m: { s: "mesh" } } };
    const groups = { g: { settings: { m: { s: "group" } } } };
    const nodes = { a: { modules: ["m"], settings: { m: { s: "node" } } } };
    expect(value(base)).toEqual({ text: "default" });
    expect(value({ ...base, mesh })).toEqual({ text: "mesh" });
    expect(value({ ...base, mesh, groups })).toEqual({ text: "group" });
    expect(value({ ...base, mesh, groups, nodes })).toEqual({ text: "node" });
  });

  it("name both groups that give one node different values", () => {
    const groups = { g: { settings: { m: { s: "1" } } }, h: { settings: { m: { s: "2" } } } };
    expect(problemsOf({ ...base, groups })[0]).toMatch(
      /groups g \("1"\) and h \("2"\) give node a different values/,
    );
    expect(value({ ...base, groups: { g: groups.g, h: groups.g } })).toEqual({ text: "1" });
  });

  it("refuse a wrong type, an unknown name with the nearest one, and a required one without value", () => {
    const modules = { m: { settings: { workers: { type: "int" } } } };
    const with_ = (settings: object) =>
      problemsOf({ nodes: { a: { modules: ["m"], settings: { m: settings } } }, modules });
    expect(with_({ workers: "x" }).join()).toMatch(/nodes\/a\.json settings\.m\.workers:.*takes an int/);
    expect(with_({ workers: 1.5 }).join()).toMatch(/takes an int/);
    expect(with_({ workers: 2, worker: 1 }).join()).toMatch(
      /unknown setting; known: workers; did you mean workers\?/,
    );
    expect(with_({}).join()).toMatch(/workers of module m is required and has no value on node a/);
    expect(problemsOf({ nodes: { a: {} }, modules })).toEqual([]);
  });
});
