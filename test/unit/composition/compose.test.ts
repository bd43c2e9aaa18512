import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { compose, createComposer, OFFLINE_FACTS } from "../../../src/composition/compose.ts";
import { revisionOf } from "../../../src/declaration/canonical.ts";
import { DeclarationBody } from "../../../src/declaration/schema.ts";
import { aCatalogue, type CatalogueParts } from "../../support/catalogue.ts";
import { aFile, aProcess, bodyOf, composed, problemsOf, resource } from "./support.ts";

const one = (manifest: Record<string, unknown>): CatalogueParts => ({
  nodes: { a: { modules: ["m"] } },
  modules: { m: manifest },
});

describe("composition", () => {
  it("COM-1: `user`+`service-web` and `user-service`+`web` stay two", () => {
    const body = bodyOf(
      {
        nodes: { a: { modules: ["user", "user-service"] } },
        modules: {
          user: { resources: [aProcess("service-web")] },
          "user-service": { resources: [aProcess("web")] },
        },
      },
      "a",
    );
    expect(body.resources.map((r) => r.id)).toEqual(["user.service-web", "user-service.web"]);
  });

  it("COM-4: account names that are too long, begin with a digit or hold a dot are refused with the limit", () => {
    for (const name of [`${"a".repeat(39)}b`, "1user", "us.er"]) {
      expect(() => aCatalogue(one({ resources: [{ type: "user", name }] }))).toThrow(/1 to 32 characters/);
    }
  });

  it("orders by tier, requires and name, and within a module by kind, parents first", () => {
    const body = bodyOf(
      {
        nodes: { a: { modules: ["z", "b", "low", "a"] } },
        modules: {
          z: { resources: [aFile("f", "/z")] },
          a: { requires: ["z"], resources: [aFile("f", "/a")] },
          b: {
            state: {},
            resources: [
              aProcess("run"),
              aProcess("init", { run: "once" }),
              aFile("f", "/d/e/f"),
              { id: "inner", type: "directory", path: "/d/e" },
              { id: "outer", type: "directory", path: "/d" },
              { type: "user", name: "u" },
              { type: "group", name: "g" },
            ],
          },
          low: { tier: 0, resources: [aFile("f", "/low")] },
        },
      },
      "a",
    );
    expect(body.modules.map((m) => m.name)).toEqual(["low", "z", "a", "b"]);
    expect(body.resources.filter((r) => r.module === "b").map((r) => r.id.slice(2))).toEqual([
      "g",
      "u",
      "state",
      "outer",
      "inner",
      "f",
      "init",
      "run",
    ]);
  });

  it("adds a preparation before a process, and refuses one of an interpreter", () => {
    const body = bodyOf(
      one({ resources: [aProcess("s", { prepares: true, env: { A: "1" }, user: "u" })] }),
      "a",
    );
    expect(body.resources.map((r) => r.id)).toEqual(["m.s-prepare", "m.s"]);
    const prepare = resource(body, "m.s-prepare", "process");
    expect(prepare).toMatchObject({
      command: ["./server", "prepare"],
      run: "once",
      env: { A: "1" },
      user: "u",
    });
    expect(resource(body, "m.s", "process").requires).toEqual(["m.s-prepare"]);
    const problems = problemsOf(
      one({ resources: [aProcess("s", { prepares: true, command: ["/bin/sh", "x"] })] }),
    );
    expect(problems[0]).toMatch(/interpreter sh/);
  });

  it("restarts on what restartOn names: its content is in the digest, policies and renames are not", () => {
    const digest = (content: string, more = {}, id = "f") =>
      resource(
        bodyOf(
          one({ resources: [aFile(id, "/f", content), aProcess("p", { restartOn: [id], ...more })] }),
          "a",
        ),
        "m.p",
        "process",
      ).digest;
    expect(digest("1")).not.toBe(digest("2"));
    expect(digest("1", { stop: { grace: "1s" }, restart: { max: "5s" } })).toBe(digest("1"));
    expect(digest("1", {}, "g")).toBe(digest("1"));
    expect(digest("1", { env: { A: "b" } })).not.toBe(digest("1"));
  });

  it("follows restartOn into another module of the node, and says so when it is not there", () => {
    const parts = (content: string, modules = ["m", "other"]): CatalogueParts => ({
      nodes: { a: { modules } },
      modules: {
        m: { resources: [aProcess("p", { restartOn: ["other.f"], command: ["./s", "${path:other.f}"] })] },
        other: { resources: [aFile("f", "/f", content)] },
      },
    });
    const digest = (content: string) => resource(bodyOf(parts(content), "a"), "m.p", "process").digest;
    expect(digest("1")).not.toBe(digest("2"));
    expect(resource(bodyOf(parts("1"), "a"), "m.p", "process").command[1]).toEqual([{ path: "/f" }]);
    expect(problemsOf(parts("1", ["m"]))[0]).toMatch(/other\.f: module other is not on node a/);
  });

  it("prints cycles of modules, of resources and of restarts", () => {
    const modules = {
      x: { requires: ["y"], resources: [] },
      y: { requires: ["x"], resources: [] },
    };
    expect(problemsOf({ nodes: { a: { modules: ["x", "y"] } }, modules })[0]).toMatch(
      /x -> y -> x|y -> x -> y/,
    );
    const resources = [aFile("f", "/f", "", { requires: ["g"] }), aFile("g", "/g", "", { requires: ["f"] })];
    expect(problemsOf(one({ resources }))[0]).toMatch(/f -> g -> f|g -> f -> g/);
    const restarts = [aProcess("p", { restartOn: ["q"] }), aProcess("q", { restartOn: ["p"] })];
    expect(problemsOf(one({ resources: restarts }))[0]).toMatch(
      /p -> m?\.?q -> m?\.?p|q -> m?\.?p -> m?\.?q/,
    );
  });

  it("names both owners of a path, an account, a process name and a port, and a path below a file", () => {
    const two = (a: unknown[], b: unknown[], more = {}): CatalogueParts => ({
      nodes: { n: { modules: ["one", "two"] } },
      modules: { one: { resources: a, ...more }, two: { resources: b, ...more } },
    });
    for (const parts of [
      two([aFile("a", "/x")], [aFile("b", "/x")]),
      two([{ type: "user", name: "u" }], [{ type: "user", name: "u" }]),
      two([aProcess("p")], [aProcess("p")]),
      two([aFile("a", "/x")], [aFile("b", "/x/y/z")]),
      two([], [], { ports: { http: 80 } }),
    ]) {
      const [problem] = problemsOf(parts);
      expect(problem).toContain("module one");
      expect(problem).toContain("module two");
    }
  });

  it("takes constructor and toString as ordinary names", () => {
    const body = bodyOf(
      {
        nodes: { constructor: { modules: ["constructor"], labels: { constructor: "x" } } },
        groups: { valueof: { match: { constructor: ["x"] }, modules: ["constructor"] } },
        modules: {
          constructor: {
            settings: { constructor: "v" },
            ports: { constructor: "auto" },
            seats: { constructor: { port: "constructor" } },
            resources: [
              aProcess("constructor", { env: { constructor: "${setting:constructor}${seat:constructor}" } }),
            ],
          },
        },
      },
      "constructor",
    );
    expect(resource(body, "constructor.constructor", "process").env).toEqual({
      constructor: "v10.0.0.1:20000",
    });
  });

  it("keeps auto ports, never meets a fixed one, and does not reuse a freed number while it is listed", () => {
    const parts: CatalogueParts = {
      nodes: { a: { modules: ["m", "f"] } },
      modules: { m: { ports: { x: "auto", y: "auto" } }, f: { ports: { z: 20001 } } },
    };
    const ports = (known: Record<string, number>) => {
      const facts = { seats: {}, ports: new Map([["a", new Map(Object.entries(known))]]) };
      return Object.fromEntries(composed(parts, facts).ports.get("a")!);
    };
    expect(ports({})).toEqual({ "m/x": 20000, "m/y": 20002 });
    expect(ports({ "m/y": 25000 })).toEqual({ "m/x": 20000, "m/y": 25000 });
    expect(ports({ "m/y": 20001 })).toEqual({ "m/x": 20000, "m/y": 20002 });
    expect(ports({ "gone/p": 20000 })).toEqual({ "m/x": 20002, "m/y": 20003 });
  });

  it("gives each consumer its own node's seat, else the first holder's, else the context's", () => {
    const { nodes } = composed(
      {
        nodes: { c: { modules: ["use"] }, b: { modules: ["hold", "use"] }, a: { modules: ["hold"] } },
        modules: {
          hold: { ports: { p: 80 }, seats: { s: { port: "p" } } },
          use: { resources: [aFile("f", "/f", "${seat:s} ${seat:mesh-store}")] },
        },
      },
      { seats: { "mesh-store": "store:1" }, ports: new Map() },
    );
    const text = (node: string) => resource(nodes.get(node)!.body, "use.f", "file").body;
    expect(text("b")).toEqual({ text: "10.0.0.2:80 store:1" });
    expect(text("c")).toEqual({ text: "10.0.0.3:80 store:1" });
  });

  it("names both modules that hold one seat", () => {
    const hold = { ports: { p: "auto" }, seats: { s: { port: "p" } } };
    const parts = { nodes: { a: { modules: ["x", "y"] } }, modules: { x: hold, y: hold } };
    expect(problemsOf(parts)[0]).toMatch(/seat s is held by two modules: x and y/);
  });
});

/** Random meshes that compose: modules that require earlier ones, files of their own, groups by label. */
const aMesh = fc
  .record({
    modules: fc.array(
      fc.record({
        tier: fc.constantFrom(0, 1, 2),
        requires: fc.array(fc.nat(20), { maxLength: 3 }),
        resources: fc.array(fc.constantFrom("file", "directory", "user", "process", "once"), {
          maxLength: 5,
        }),
        placed: fc.array(fc.nat(3), { maxLength: 3 }),
      }),
      { minLength: 1, maxLength: 8 },
    ),
    nodes: fc.integer({ min: 1, max: 4 }),
  })
  .map(({ modules, nodes }): CatalogueParts => {
    const tiers = modules.map((m) => m.tier);
    const manifests = modules.map((m, i) => ({
      tier: m.tier,
      requires: m.requires.filter((r) => r < i && tiers[r]! <= m.tier).map((r) => `m${r}`),
      ports: { p: "auto" },
      settings: { s: `v${i}` },
      resources: m.resources.map((type, k) => {
        const name = `m${i}r${k}`;
        if (type === "user") return { type, name };
        if (type === "directory") return { type, id: name, path: `/${name}` };
        if (type === "file") return aFile(name, `/${name}`, "${setting:s} ${node:name} ${port:p} $${x}");
        return aProcess(name, { run: type === "once" ? "once" : "service", command: ["./x", "${port:p}"] });
      }),
    }));
    const placed = new Map<number, Set<string>>();
    const place = (node: number, i: number) => {
      if (placed.get(node)?.has(`m${i}`)) return;
      placed.set(node, (placed.get(node) ?? new Set()).add(`m${i}`));
      for (const required of manifests[i]!.requires) place(node, Number(required.slice(1)));
    };
    modules.forEach((m, i) => {
      for (const node of m.placed) place(node % nodes, i);
    });
    return {
      modules: Object.fromEntries(manifests.map((m, i) => [`m${i}`, m])),
      nodes: Object.fromEntries(
        Array.from({ length: nodes }, (_, n) => [
          `n${n}`,
          { address: `10.0.0.${n}`, modules: [...(placed.get(n) ?? [])] },
        ]),
      ),
    };
  });

const shuffled = <T>(record: Record<string, T>, by: number): Record<string, T> => {
  const entries = Object.entries(record);
  return Object.fromEntries(
    [...entries.slice(by % (entries.length || 1)), ...entries.slice(0, by % (entries.length || 1))].reverse(),
  );
};

describe("composition, by properties", () => {
  const revisions = (parts: CatalogueParts) =>
    [...composed(parts).nodes.values()].map((n) => [n.node, n.revision]);

  it("gives the same bytes for the same input, whatever the order of files and keys", () => {
    fc.assert(
      fc.property(aMesh, fc.nat(7), (parts, by) => {
        const other: CatalogueParts = {
          modules: Object.fromEntries(
            Object.entries(shuffled(parts.modules!, by)).map(([k, v]) => [k, shuffled(v, by)]),
          ),
          nodes: Object.fromEntries(
            Object.entries(shuffled(parts.nodes!, by)).map(([k, v]) => [
              k,
              { ...v, modules: [...(v.modules as string[])].reverse() },
            ]),
          ),
        };
        expect(revisions(other)).toEqual(revisions(parts));
      }),
    );
  });

  it("puts every required module and resource before what requires it, with one owner for each thing", () => {
    fc.assert(
      fc.property(aMesh, (parts) => {
        for (const node of composed(parts).nodes.values()) {
          const { body } = node;
          expect(revisionOf(body)).toBe(node.revision);
          expect(DeclarationBody.parse(body)).toEqual(body);
          const names = body.modules.map((m) => m.name);
          body.modules.forEach((m, i) => {
            for (const r of m.requires) expect(names.indexOf(r)).toBeLessThan(i);
          });
          const owned = body.resources.map((r) => ("path" in r ? r.path : `${r.type} ${r.name}`));
          expect(new Set(owned).size).toBe(owned.length);
        }
      }),
    );
  });

  it("answers the same with its memory as without, after any sequence of catalogues", () => {
    fc.assert(
      fc.property(fc.array(aMesh, { minLength: 2, maxLength: 4 }), (meshes) => {
        const composer = createComposer();
        let before: ReturnType<typeof aCatalogue> | undefined;
        for (const parts of [...meshes, ...meshes]) {
          const catalogue = aCatalogue(parts, before);
          before = catalogue;
          const warm = composer.compose(composer.resolve(catalogue).view, OFFLINE_FACTS);
          const cold = compose(catalogue);
          expect([...warm.nodes.values()].map((n) => n.revision)).toEqual(
            [...cold.nodes.values()].map((n) => n.revision),
          );
          expect(warm.ports).toEqual(cold.ports);
        }
      }),
      { numRuns: 60 },
    );
  });

  it("answers the same in slices", async () => {
    const catalogue = aCatalogue(fc.sample(aMesh, { numRuns: 1, seed: 7 })[0]!);
    const sliced = await createComposer().composeCatalogue(catalogue, OFFLINE_FACTS, 0);
    expect([...sliced.nodes.values()].map((n) => n.revision)).toEqual(
      [...compose(catalogue).nodes.values()].map((n) => n.revision),
    );
  });
});
