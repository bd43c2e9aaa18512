import { describe, expect, it } from "vitest";
import { MeshFile } from "../../../src/catalogue/schema/mesh.ts";
import { type GuardBody, type GuardInput, type GuardNode, guard } from "../../../src/plan/guard.ts";
import { confirmLine, confirms, parseConfirmTrailer } from "../../../src/plan/trailer.ts";

type Resource = GuardBody["resources"][number];

function file(id: string, takes: string[] = []): Resource {
  return { id, type: "file", digest: "d", takes };
}
function process(id: string, digest: string, run: "service" | "once" = "service"): Resource {
  return { id, type: "process", digest, takes: [], run };
}
function body(...resources: Resource[]): GuardBody {
  return { resources };
}
function files(count: number, prefix = "web.f"): Resource[] {
  return Array.from({ length: count }, (_, n) => file(`${prefix}${n}`));
}

function diff(before: GuardBody | null, after: GuardBody) {
  const old = new Map(before?.resources.map((resource) => [resource.id, resource]));
  return after.resources
    .filter(({ id, digest }) => old.has(id) && old.get(id)!.digest !== digest)
    .map(({ id, type }) => ({ id, change: type === "process" ? "restart" : "update" }));
}

function hits(nodes: GuardNode[], more: Partial<GuardInput> = {}): string[] {
  const { guard: settings } = MeshFile.parse({});
  const input = { nodes, settings, descends: true, commit: "c2", base: "c1", diff, ...more };
  return guard(input).map(({ item }) => item);
}

describe("emptied", () => {
  it("names each node that had resources and gets none", () => {
    const nodes = [
      { node: "b", before: body(file("x.a")), after: body() },
      { node: "a", before: body(file("x.a")), after: body() },
      { node: "c", before: body(), after: body() },
      { node: "d", before: null, after: body() },
      { node: "e", before: body(file("x.a")), after: body(file("x.b", ["x.a"])) },
    ];
    expect(hits(nodes)).toEqual(["emptied a", "emptied b"]);
    const off = { ...MeshFile.parse({}).guard, emptied: false };
    expect(hits(nodes, { settings: off })).toEqual([]);
  });
});

describe("removals", () => {
  it("counts ids once over all nodes, and asks above the count", () => {
    const stays = files(100, "base.f");
    const lose = (n: number) =>
      ["a", "b", "c"].map((node) => ({ node, before: body(...stays, ...files(n)), after: body(...stays) }));
    expect(hits(lose(20))).toEqual([]);
    expect(hits(lose(21))).toEqual(["removals 21"]);
  });

  it("asks above the share from five on", () => {
    const lose = (n: number, of: number) => [
      { node: "a", before: body(...files(of)), after: body(...files(of).slice(n)) },
    ];
    expect(hits(lose(4, 6))).toEqual([]);
    expect(hits(lose(5, 17))).toEqual([]);
    expect(hits(lose(5, 16))).toEqual(["removals 5"]);
  });

  it("takes what another resource takes over for moved, not removed", () => {
    const before = body(...files(30));
    const after = body(...files(30).map(({ id }) => file(`new.${id.slice(4)}`, [id])));
    expect(hits([{ node: "a", before, after }])).toEqual([]);
  });
});

describe("restarts", () => {
  const run = (n: number, digest: string) => Array.from({ length: n }, (_, i) => process(`m.p${i}`, digest));

  it("asks above the share of what runs, when at least ten run", () => {
    const change = (changed: number, of: number) => [
      {
        node: "a",
        before: body(...run(of, "1")),
        after: body(...run(changed, "2"), ...run(of, "1").slice(changed)),
      },
    ];
    expect(hits(change(9, 9))).toEqual([]);
    expect(hits(change(5, 10))).toEqual([]);
    expect(hits(change(6, 10))).toEqual(["restarts 6"]);
  });

  it("does not count a run-once as something that runs", () => {
    const once = (digest: string) =>
      body(...Array.from({ length: 12 }, (_, i) => process(`m.o${i}`, digest, "once")));
    expect(hits([{ node: "a", before: once("1"), after: once("2") }])).toEqual([]);
  });

  it("asks nothing where every restart puts back what ran before the base plan", () => {
    const node = { node: "a", before: body(...run(10, "2")), after: body(...run(10, "1")) };
    expect(hits([node])).toEqual(["restarts 10"]);
    expect(hits([{ ...node, beforeBase: body(...run(10, "1")) }])).toEqual([]);
    expect(hits([{ ...node, beforeBase: body(...run(9, "1")) }])).toEqual(["restarts 10"]);
  });
});

describe("undoing", () => {
  it("asks nothing to remove only what the base plan added", () => {
    const node = { node: "a", before: body(file("k.a"), ...files(30)), after: body(file("k.a")) };
    expect(hits([node])).toEqual(["removals 30"]);
    expect(hits([{ ...node, beforeBase: body(file("k.a")) }])).toEqual([]);
    expect(hits([{ ...node, beforeBase: body(file("k.a"), file("web.f1")) }])).toEqual(["removals 30"]);
  });

  it("asks nothing to empty a node that had nothing before the base plan", () => {
    const node = { node: "a", before: body(file("k.a")), after: body() };
    expect(hits([{ ...node, beforeBase: null }])).toEqual([]);
    expect(hits([{ ...node, beforeBase: body(file("k.a")) }])).toEqual(["emptied a"]);
  });
});

describe("a move", () => {
  const moved = [file("k.a"), process("k.run", "1")];
  const from = { node: "m", before: body(...moved), after: body() };

  it("PLN-6: asks to empty the machine also where the base plan had filled it: it adds elsewhere, so it is no undoing", () => {
    const there = { node: "n", before: body(file("x.a")), after: body(file("x.a"), ...moved) };
    const toThere = [
      { ...from, beforeBase: body() },
      { ...there, beforeBase: body(file("x.a")) },
    ];
    expect(hits(toThere)).toEqual(["emptied m"]);
    const toNew = { node: "n", before: null, after: body(...moved), beforeBase: null };
    expect(hits([{ ...from, beforeBase: null }, toNew])).toEqual(["emptied m"]);
  });

  it("asks nothing to move back what the base plan moved", () => {
    const back = { node: "n", before: body(), after: body(...moved), beforeBase: body(...moved) };
    expect(hits([{ ...from, beforeBase: body() }, back])).toEqual([]);
  });

  it("counts removals and restarts beside something new, whatever the base plan added", () => {
    const fresh = { node: "n", before: body(), after: body(file("z.new")), beforeBase: body() };
    const removes = { node: "a", before: body(...files(30)), after: body(files(1)[0]!), beforeBase: body() };
    expect(hits([removes])).toEqual([]);
    expect(hits([removes, fresh])).toEqual(["removals 29"]);
    const run = (digest: string) => body(...Array.from({ length: 10 }, (_, n) => process(`p.${n}`, digest)));
    const restarts = { node: "a", before: run("2"), after: run("1"), beforeBase: run("1") };
    expect(hits([restarts])).toEqual([]);
    expect(hits([restarts, fresh])).toEqual(["restarts 10"]);
  });
});

describe("history", () => {
  it("asks for a commit that does not descend from the base", () => {
    expect(hits([], { descends: false })).toEqual(["history"]);
    const off = { ...MeshFile.parse({}).guard, history: false };
    expect(hits([], { descends: false, settings: off })).toEqual([]);
  });
});

describe("Mesh-Confirm", () => {
  const found = [
    { rule: "emptied" as const, detail: "", item: "emptied web-1" },
    { rule: "removals" as const, detail: "", item: "removals 34" },
  ];

  it("confirms when it says what the guard says, whatever its spacing and lines", () => {
    const line = confirmLine(found)!;
    expect(line).toBe("Mesh-Confirm: emptied web-1, removals 34");
    expect(confirms(parseConfirmTrailer(`subject\n\nbody\n\n${line}\n`), found)).toBe(true);
    const spread = "s\n\nmesh-confirm:  removals  34 \r\nMesh-Confirm: emptied web-1\r\n";
    expect(confirms(parseConfirmTrailer(spread), found)).toBe(true);
  });

  it.each(["removals 34", "emptied web-1, removals 35", "emptied web-2, removals 34", "", "history"])(
    "does not confirm with %j",
    (items) => {
      expect(confirms(parseConfirmTrailer(`s\n\nMesh-Confirm: ${items}`), found)).toBe(false);
    },
  );

  it("is null where the guard found nothing", () => {
    expect(confirmLine([])).toBeNull();
    expect(parseConfirmTrailer("no trailer: Mesh-Confirm")).toEqual([]);
  });
});
