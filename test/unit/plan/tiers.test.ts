import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { createComposer, OFFLINE_FACTS } from "../../../src/composition/compose.ts";
import { revisionOf } from "../../../src/declaration/canonical.ts";
import type { DeclarationBody } from "../../../src/declaration/schema.ts";
import { preview, sentAs } from "../../../src/plan/preview.ts";
import { composeTiers, type SentState, touchedNodes } from "../../../src/plan/tiers.ts";
import { aCatalogue, type CatalogueParts } from "../../support/catalogue.ts";
import { aFile, aProcess } from "../composition/support.ts";

/** The three tiers of a merge from one catalogue, wholly applied, to another. */
function merge(from: CatalogueParts, to: CatalogueParts) {
  const base = sentAs(aCatalogue(from));
  expect(base.problems).toEqual([]);
  const composer = createComposer();
  const { view, problems } = composer.resolve(aCatalogue(to));
  expect(problems).toEqual([]);
  const result = composeTiers(composer, view, base, { ...OFFLINE_FACTS, ports: base.ports });
  expect(result.problems).toEqual([]);
  const final = createComposer().compose(view, { ...OFFLINE_FACTS, ports: result.ports });
  return { ...result, base, final };
}

const bodies = (result: ReturnType<typeof merge>, node: string) =>
  result.tiers.map((tier) => tier.nodes.get(node)!.body);
const ids = (body: DeclarationBody) => body.resources.map((r) => r.id);
const find = (body: DeclarationBody, id: string) => body.resources.find((r) => r.id === id)!;
const text = (body: DeclarationBody, id: string) =>
  (find(body, id) as { body?: { text: string } }).body?.text;

describe("what a tier sends", () => {
  it("brings each module in its own tier, and nothing of a later one before", () => {
    const parts = (v: string): CatalogueParts => ({
      nodes: { a: { modules: ["m0", "m1", "m2"] } },
      modules: Object.fromEntries(
        [0, 1, 2].map((tier) => [`m${tier}`, { tier, resources: [aFile("f", `/m${tier}`, v)] }]),
      ),
    });
    const shown = bodies(merge(parts("old"), parts("new")), "a").map((body) =>
      [0, 1, 2].map((i) => text(body, `m${i}.f`)),
    );
    expect(shown).toEqual([
      ["new", "old", "old"],
      ["new", "new", "old"],
      ["new", "new", "new"],
    ]);
  });

  it("gives a new node its modules tier by tier, and does not touch it before it has one", () => {
    const modules = { m1: { tier: 1, resources: [aFile("f", "/f")] } };
    const result = merge({ modules }, { modules, nodes: { a: { modules: ["m1"] }, b: {} } });
    const touched = touchedNodes(result.tiers, () => null).map((t) => t.nodes.map((n) => n.node));
    expect(touched).toEqual([[], ["a"], ["b"]]);
  });

  it("keeps until tier 2 what the new commit no longer has: resources, modules, retired nodes", () => {
    const from: CatalogueParts = {
      nodes: { a: { modules: ["m", "gone"] }, r: { modules: ["m"] } },
      modules: {
        m: { tier: 0, resources: [aFile("f", "/f"), aFile("g", "/g")] },
        gone: { tier: 0, resources: [aFile("f", "/gone")] },
      },
    };
    const to: CatalogueParts = {
      nodes: { a: { modules: ["m"] }, r: { modules: ["m"], retire: true } },
      modules: { m: { tier: 0, resources: [aFile("f", "/f", "new")] } },
    };
    const result = merge(from, to);
    expect(bodies(result, "a").map(ids)).toEqual([
      ["gone.f", "m.f", "m.g"],
      ["gone.f", "m.f", "m.g"],
      ["m.f"],
    ]);
    expect(text(bodies(result, "a")[0]!, "m.f")).toBe("new");
    expect(bodies(result, "r").map(ids)).toEqual([["m.f", "m.g"], ["m.f", "m.g"], []]);
  });

  it("PLN-6: a module that moves starts on the new machine and leaves the old one in tier 2", () => {
    const modules = { m: { tier: 1, resources: [aFile("f", "/f")] } };
    const result = merge(
      { modules, nodes: { m: { modules: ["m"] }, n: {} } },
      { modules, nodes: { m: {}, n: { modules: ["m"] } } },
    );
    expect(bodies(result, "m").map(ids)).toEqual([["m.f"], ["m.f"], []]);
    expect(bodies(result, "n").map(ids)).toEqual([[], ["m.f"], ["m.f"]]);
    expect(result.tiers[2].nodes.get("m")!.body.modules).toEqual([]);
  });

  it("PLN-6: a machine that is renamed is sent nothing under its old name, and everything under its new one", () => {
    const modules = { m: { resources: [aFile("f", "/f")] } };
    const result = merge(
      { modules, nodes: { old: { modules: ["m"] } } },
      { modules, nodes: { new: { modules: ["m"] } } },
    );
    expect(result.tiers.map((tier) => [...tier.nodes.keys()])).toEqual([["new"], ["new"], ["new"]]);
    expect(bodies(result, "new").map(ids)).toEqual([[], [], ["m.f"]]);
  });

  it("lets a new resource take an old one's path in its own tier: the old one is dropped then, and named", () => {
    const from: CatalogueParts = {
      nodes: { a: { modules: ["old"] } },
      modules: { old: { tier: 2, resources: [aFile("f", "/f"), aFile("other", "/other")] } },
    };
    const to: CatalogueParts = {
      nodes: { a: { modules: ["new"] } },
      modules: { new: { tier: 1, resources: [aFile("g", "/f")] } },
    };
    const shown = bodies(merge(from, to), "a");
    expect(shown.map(ids)).toEqual([["old.f", "old.other"], ["new.g", "old.other"], ["new.g"]]);
    expect(shown.map((body) => find(body, "new.g")?.takes)).toEqual([undefined, ["old.f"], ["old.f"]]);
  });

  it("lets it take account, process name, port, and a path that lies below an old file", () => {
    const old = {
      tier: 2,
      ports: { http: 8080 },
      resources: [
        { type: "user", name: "u", id: "account" },
        aProcess("server", { command: ["./s", "${port:http}"] }),
        aProcess("idle"),
        aFile("f", "/d"),
      ],
    };
    const next = {
      tier: 0,
      ports: { web: 8080 },
      resources: [
        { type: "user", name: "u" },
        aProcess("other", { command: ["./t", "${port:web}"] }),
        aProcess("idle", { id: "lazy" }),
        aFile("below", "/d/e"),
      ],
    };
    const result = merge(
      { nodes: { a: { modules: ["old"] } }, modules: { old } },
      { nodes: { a: { modules: ["next"] } }, modules: { next } },
    );
    const [first] = bodies(result, "a");
    expect(Object.fromEntries(first!.resources.map((r) => [r.id, r.takes]))).toEqual({
      "next.u": ["old.account"],
      "next.below": ["old.f"],
      "next.other": ["old.server"],
      "next.lazy": ["old.idle"],
    });
  });

  it("renames an id in place: the new one takes the old one, and nothing else is sent for it later", () => {
    const parts = (id: string): CatalogueParts => ({
      nodes: { a: { modules: ["m"] } },
      modules: { m: { resources: [aFile(id, "/f")] } },
    });
    const result = merge(parts("old"), parts("new"));
    const final = result.tiers[2].nodes.get("a")!;
    expect(find(final.body, "m.new").takes).toEqual(["m.old"]);
    const composer = createComposer();
    const { view } = composer.resolve(aCatalogue(parts("new")));
    const again = composeTiers(composer, view, asSent(result), OFFLINE_FACTS);
    expect(again.tiers.map((tier) => tier.nodes.get("a")!.revision)).toEqual(
      [0, 1, 2].map(() => final.revision),
    );
  });

  it("moves a seat in the tier of its new holder, and restarts its users then", () => {
    const use = { tier: 0, resources: [aProcess("p", { command: ["./p", "${seat:s}"] })] };
    const holder = (tier: number, port: number) => ({
      tier,
      ports: { p: port },
      seats: { s: { port: "p" } },
    });
    const result = merge(
      {
        nodes: { a: { modules: ["one"] }, b: {}, u: { modules: ["use"] } },
        modules: { use, one: holder(1, 81) },
      },
      {
        nodes: { a: {}, b: { modules: ["two"] }, u: { modules: ["use"] } },
        modules: { use, two: holder(1, 82) },
      },
    );
    const seen = bodies(result, "u").map(
      (body) => (find(body, "use.p") as { command?: unknown[] }).command![1],
    );
    expect(seen).toEqual(["10.0.0.1:81", "10.0.0.2:82", "10.0.0.2:82"]);
  });

  it("keeps an old module's last values of seats and settings that the new commit no longer has", () => {
    const from: CatalogueParts = {
      nodes: { a: { modules: ["hold", "use"] } },
      mesh: { settings: { use: { old: "custom" } } },
      modules: {
        hold: { tier: 0, ports: { p: 81 }, seats: { s: { port: "p" } } },
        use: {
          tier: 2,
          settings: { old: "default" },
          resources: [aFile("f", "/f", "${seat:s} ${setting:old}")],
        },
      },
    };
    const to: CatalogueParts = {
      nodes: { a: { modules: ["hold", "use"] } },
      modules: {
        hold: { tier: 0, ports: { p: 82 }, seats: { t: { port: "p" } } },
        use: { tier: 2, settings: { now: "x" }, resources: [aFile("f", "/f", "${seat:t} ${setting:now}")] },
      },
    };
    const shown = bodies(merge(from, to), "a").map((body) => text(body, "use.f"));
    expect(shown).toEqual(["10.0.0.1:81 custom", "10.0.0.1:81 custom", "10.0.0.1:82 x"]);
  });

  it("gives a module of a low tier the seat that a later tier brings", () => {
    const result = merge(
      {},
      {
        nodes: { a: { modules: ["proxy", "web"] } },
        modules: {
          proxy: { tier: 1, resources: [aFile("f", "/f", "${seat:web}")] },
          web: { tier: 2, ports: { p: "auto" }, seats: { web: { port: "p" } } },
        },
      },
    );
    expect(bodies(result, "a").map((body) => find(body, "proxy.f") && text(body, "proxy.f"))).toEqual([
      undefined,
      "10.0.0.1:20000",
      "10.0.0.1:20000",
    ]);
  });

  it("gives an auto port one number in all tiers", () => {
    const auto = (tier: number, id: string) => ({
      tier,
      ports: { p: "auto" },
      resources: [aFile("f", `/${id}`, "${port:p}")],
    });
    const result = merge(
      { nodes: { a: {} } },
      { nodes: { a: { modules: ["z", "b"] } }, modules: { z: auto(0, "z"), b: auto(2, "b") } },
    );
    const shown = bodies(result, "a").map((body) => find(body, "z.f") && text(body, "z.f"));
    expect(new Set(shown).size).toBe(1);
  });

  it("goes on from a plan that stopped after its first tier", () => {
    const parts = (v: string, extra: unknown[] = []): CatalogueParts => ({
      nodes: { a: { modules: ["m", "n"] } },
      modules: {
        m: { tier: 0, resources: [aFile("f", "/f", v), ...extra] },
        n: { tier: 2, resources: [aFile("f", "/n", v)] },
      },
    });
    const first = merge(parts("1", [aFile("g", "/g")]), parts("2"));
    const composer = createComposer();
    const { view } = composer.resolve(aCatalogue(parts("3")));
    const next = composeTiers(
      composer,
      view,
      asSent(first, 0, parts("1", [aFile("g", "/g")])),
      OFFLINE_FACTS,
    );
    const shown = next.tiers.map((tier) => tier.nodes.get("a")!.body);
    expect(shown.map(ids)).toEqual([
      ["m.f", "m.g", "n.f"],
      ["m.f", "m.g", "n.f"],
      ["m.f", "n.f"],
    ]);
    expect(shown.map((body) => [text(body, "m.f"), text(body, "n.f")])).toEqual([
      ["3", "1"],
      ["3", "1"],
      ["3", "3"],
    ]);
  });

  it("keeps what a lost old version declared, as it was sent", () => {
    const from = { nodes: { a: { modules: ["m"] } }, modules: { m: { resources: [aFile("f", "/f")] } } };
    const to = {
      nodes: { a: { modules: ["n"] } },
      modules: { n: { tier: 0, resources: [aFile("f", "/n")] } },
    };
    const base: SentState = { ...sentAs(aCatalogue(from)), versions: () => null };
    const composer = createComposer();
    const result = composeTiers(composer, composer.resolve(aCatalogue(to)).view, base, OFFLINE_FACTS);
    const shown = result.tiers.map((tier) => tier.nodes.get("a")!.body);
    expect(shown.map(ids)).toEqual([["n.f", "m.f"], ["n.f", "m.f"], ["n.f"]]);
    expect(shown[0]!.modules.map((m) => m.name)).toEqual(["n", "m"]);
  });
});

/** The state after a tier of a merge was sent to every node. */
function asSent(result: ReturnType<typeof merge>, tier = 2, from?: CatalogueParts): SentState {
  const { nodes } = result.tiers[tier]!;
  const known = [from, undefined].flatMap((parts) => (parts ? [...aCatalogue(parts).modules.values()] : []));
  const versions = new Map(known.map((version) => [version.tree, version]));
  const view = [...result.tiers.map((t) => t), result.final];
  for (const composition of view)
    for (const node of composition.nodes.values()) for (const v of node.versions) versions.set(v.tree, v);
  return {
    sent: new Map([...nodes].map(([name, node]) => [name, JSON.parse(JSON.stringify(node.sent))])),
    versions: (tree) => versions.get(tree),
    lastBodies: { get: (name) => nodes.get(name)?.body },
  };
}

/** Two catalogues over the same names, each of which composes. */
const aCatalogueOf = fc
  .record({
    modules: fc.array(
      fc.record({
        tier: fc.constantFrom(0, 1, 2),
        files: fc.uniqueArray(fc.nat(5), { maxLength: 3 }),
        ids: fc.nat(3),
        port: fc.boolean(),
        content: fc.nat(2),
        on: fc.uniqueArray(fc.nat(2), { maxLength: 3 }),
      }),
      { minLength: 4, maxLength: 4 },
    ),
    retire: fc.boolean(),
  })
  .map(({ modules, retire }): CatalogueParts => {
    const owner = new Map<number, number>();
    for (const [i, m] of modules.entries()) for (const f of m.files) if (!owner.has(f)) owner.set(f, i);
    return {
      modules: Object.fromEntries(
        modules.map((m, i) => [
          `m${i}`,
          {
            tier: m.tier,
            ...(m.port ? { ports: { p: "auto" }, seats: { [`s${i}`]: { port: "p" } } } : {}),
            resources: [
              ...m.files
                .filter((f) => owner.get(f) === i)
                .map((f) => aFile(`f${f}x${m.ids}`, `/f${f}`, `${m.content}`)),
              aProcess(`p${i}`, { id: `p${m.ids}`, command: ["./x", m.port ? "${port:p}" : "none"] }),
            ],
          },
        ]),
      ),
      nodes: Object.fromEntries(
        [0, 1, 2].map((n) => [
          `n${n}`,
          {
            address: `10.0.0.${n}`,
            retire: retire && n === 2,
            modules: modules.flatMap((m, i) => (m.on.includes(n) ? [`m${i}`] : [])),
          },
        ]),
      ),
    };
  });

const withoutTakes = (body: DeclarationBody) => ({
  ...body,
  resources: body.resources.map((r) => ({ ...r, takes: [] })),
});

describe("what tiers send, by properties", () => {
  it("ends at the plain composition of the new catalogue, apart from takes", () => {
    fc.assert(
      fc.property(aCatalogueOf, aCatalogueOf, (from, to) => {
        const { tiers, final } = merge(from, to);
        for (const [name, node] of tiers[2].nodes) {
          expect(withoutTakes(node.body)).toEqual(withoutTakes(final.nodes.get(name)!.body));
          expect(revisionOf(node.body)).toBe(node.revision);
        }
      }),
    );
  });

  it("removes nothing before tier 2 that nobody claims, and never has two owners", () => {
    fc.assert(
      fc.property(aCatalogueOf, aCatalogueOf, (from, to) => {
        const result = merge(from, to);
        for (const name of result.tiers[0].nodes.keys()) {
          const before = ids(result.base.lastBodies.get(name)!);
          for (const body of bodies(result, name).slice(0, 2)) {
            const there = new Set([...ids(body), ...body.resources.flatMap((r) => r.takes)]);
            expect(before.filter((id) => !there.has(id))).toEqual([]);
          }
          for (const body of bodies(result, name)) {
            const owned = body.resources.map((r) => ("path" in r ? r.path : `${r.type} ${r.name}`));
            expect(new Set(owned).size).toBe(owned.length);
            const declared = new Set(ids(body));
            expect(body.resources.flatMap((r) => r.takes).filter((id) => declared.has(id))).toEqual([]);
            expect(body.resources.flatMap((r) => r.requires).filter((id) => !declared.has(id))).toEqual([]);
          }
        }
      }),
    );
  });

  it("touches no node when the catalogue is the same, also after a merge that took things over", () => {
    fc.assert(
      fc.property(aCatalogueOf, aCatalogueOf, (from, to) => {
        const result = merge(from, to);
        const composer = createComposer();
        const { view } = composer.resolve(aCatalogue(to));
        const facts = { ...OFFLINE_FACTS, ports: result.tiers[2].ports };
        const again = composeTiers(composer, view, asSent(result), facts);
        const revision = (node: string) => result.tiers[2].nodes.get(node)?.revision ?? null;
        expect(touchedNodes(again.tiers, revision).map((t) => t.nodes)).toEqual([[], [], []]);
      }),
    );
  });

  it("arrives from any tier at which a plan was superseded", () => {
    fc.assert(
      fc.property(
        aCatalogueOf,
        aCatalogueOf,
        aCatalogueOf,
        fc.constantFrom(0, 1, 2),
        (from, to, then, tier) => {
          const first = merge(from, to);
          const composer = createComposer();
          const { view } = composer.resolve(aCatalogue(then));
          const state = asSent(first, tier, from);
          const next = composeTiers(composer, view, state, { ...OFFLINE_FACTS, ports: first.ports });
          expect(next.problems).toEqual([]);
          const plain = createComposer().compose(view, { ...OFFLINE_FACTS, ports: next.ports });
          for (const [name, node] of next.tiers[2].nodes) {
            expect(withoutTakes(node.body)).toEqual(withoutTakes(plain.nodes.get(name)!.body));
            const before = ids(state.lastBodies.get(name)!);
            for (const early of [0, 1]) {
              const { body } = next.tiers[early]!.nodes.get(name)!;
              const there = new Set([...ids(body), ...body.resources.flatMap((r) => r.takes)]);
              expect(before.filter((id) => !there.has(id))).toEqual([]);
            }
          }
        },
      ),
    );
  });
});

describe("a preview", () => {
  it("tells each tier's nodes and changes, what the guard says, and the trailer", () => {
    const parts = (v: string): CatalogueParts => ({
      nodes: { a: { modules: ["m", "n"] }, b: {} },
      modules: {
        m: { tier: 0, resources: [aFile("f", "/f", v), aProcess("p", { restartOn: ["f"] })] },
        n: { resources: v === "1" ? [aFile("f", "/n")] : [] },
      },
    });
    const document = preview({
      next: aCatalogue({ ...parts("2"), commit: "b".repeat(40) }),
      base: sentAs(aCatalogue({ ...parts("1"), commit: "a".repeat(40) })),
      guard: (nodes) => [{ rule: "removals", detail: `of ${nodes.length}`, item: "removals 1" }],
      confirmLine: (hits) => `Mesh-Confirm: ${hits[0]!.item}`,
    });
    expect(document).toEqual({
      from: "a".repeat(40),
      to: "b".repeat(40),
      tiers: [
        {
          tier: 0,
          modules: ["m"],
          builds: [],
          nodes: [
            {
              node: "a",
              changes: [
                { id: "m.f", change: "update", fields: ["body"] },
                { id: "m.p", change: "restart", fields: ["restartOn"] },
              ],
            },
          ],
        },
        { tier: 1, modules: [], builds: [], nodes: [] },
        {
          tier: 2,
          modules: ["n"],
          builds: [],
          nodes: [{ node: "a", changes: [{ id: "n.f", change: "remove", fields: [] }] }],
        },
      ],
      guard: [{ rule: "removals", detail: "of 2" }],
      confirm: "Mesh-Confirm: removals 1",
      problems: [],
    });
  });
});
