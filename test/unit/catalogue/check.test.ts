import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { CatalogueResult } from "../../../src/catalogue/catalogue.ts";
import type { Entry, Objects } from "../../../src/catalogue/objects.ts";
import { TreeReader } from "../../../src/catalogue/reader.ts";
import { formatTree, objectId } from "../../../src/io/git-objects.ts";
import { catalogueFiles } from "../../support/repository.ts";

type Files = Record<string, string | Buffer | object>;

/** Objects in memory, made from files by path; counts what is read of them. */
class MemoryObjects implements Objects {
  readonly #trees = new Map<string, Entry[]>();
  readonly #blobs = new Map<string, Buffer>();
  reads: string[] = [];

  add(files: Files): string {
    const tree = new Map<string, Files>();
    const entries: Array<Entry & { executable: boolean }> = [];
    for (const [path, body] of Object.entries(files)) {
      const [first, ...rest] = path.split("/") as [string, ...string[]];
      if (rest.length > 0) {
        tree.set(first, { ...tree.get(first), [rest.join("/")]: body });
        continue;
      }
      const bytes = Buffer.isBuffer(body)
        ? body
        : Buffer.from(typeof body === "string" ? body : JSON.stringify(body));
      const oid = objectId("blob", bytes);
      this.#blobs.set(oid, bytes);
      entries.push({ name: first, kind: "file", oid, executable: false });
    }
    for (const [name, inner] of tree)
      entries.push({ name, kind: "folder", oid: this.add(inner), executable: false });
    const oid = objectId("tree", formatTree(entries));
    this.#trees.set(oid, entries);
    return oid;
  }

  async readTree(oid: string) {
    this.reads.push(oid);
    return this.#trees.get(oid) as Entry[];
  }

  async readBlob(oid: string) {
    this.reads.push(oid);
    return this.#blobs.get(oid) as Buffer;
  }
}

async function check(files: Files): Promise<CatalogueResult> {
  const objects = new MemoryObjects();
  return new TreeReader(objects).read(objects.add(files), { commit: null, subject: "" });
}

async function problemsOf(files: Files): Promise<string[]> {
  const result = await check(files);
  return result.ok
    ? []
    : result.problems.map((p) => `${p.file}:${p.line}:${p.column}: ${p.path}: ${p.message}`);
}

/** The problems of the small catalogue with one file put in its place or beside it. */
const withFile = (file: string, body: string | Buffer | object) =>
  problemsOf({ ...catalogueFiles(), [file]: body });

const process = (more: object) => ({ type: "process", name: "server", command: ["./serve"], ...more });
const module = (more: object) => withFile("modules/other/module.json", { name: "other", ...more });

describe("a check and a signal that could never work", () => {
  const at = (more: object) =>
    module({ ports: { http: 8_080 }, settings: { url: "x" }, resources: [process(more)] });

  test.each<[string, object, string]>([
    ["no URL", { check: { http: "x" } }, 'check.http: found "x"; must be a URL such as'],
    ["another protocol", { check: { http: "ftp://x/" } }, 'found "ftp://x/"; must be a URL'],
    ["a port too high", { check: { http: "http://x:99999/" } }, "must be a URL"],
    ["no port", { check: { tcp: "somewhere" } }, 'check.tcp: found "somewhere"; must be host:port'],
    ["a tcp port too high", { check: { tcp: "h:65536" } }, "must be host:port"],
    ["an unknown signal", { stop: { signal: "SIGFOO" } }, 'stop.signal: found "SIGFOO"; must be one of'],
    ["a near signal", { stop: { signal: "SIGTREM" } }, 'did you mean "SIGTERM"?'],
  ])("%s", async (_what, more, expected) => {
    const problems = await at(more);
    expect(problems).toHaveLength(1);
    expect(problems[0]).toContain(expected);
  });

  test.each<[object]>([
    [{ check: { http: "http://${node:address}:${port:http}/health?a=1" } }],
    [{ check: { http: "https://${seat:mesh-controller}/" } }],
    [{ check: { http: "${setting:url}" } }],
    [{ check: { tcp: "${seat:mesh-store}" } }],
    [{ check: { tcp: "${node:address}:${port:http}" } }],
    [{ check: { tcp: "[::1]:80" } }],
    [{ stop: { signal: "SIGQUIT" }, reload: { signal: "SIGUSR2" } }],
  ])("%j is taken", async (more) => expect(await at(more)).toEqual([]));
});

test("an empty label is refused in words", async () => {
  expect(await withFile("nodes/x.json", { address: "a", labels: { "": "x" } })).toEqual([
    'nodes/x.json:1:26: labels[""]: found the key ""; a key here must not be empty',
  ]);
});

test("a small catalogue is valid", async () => {
  expect(await problemsOf(catalogueFiles())).toEqual([]);
});

describe("a file that cannot be read as JSON with comments", () => {
  test.each<[string, string | Buffer, string]>([
    ["is UTF-16", Buffer.from("\ufeff{}", "utf16le"), "nodes/x.json:1:1: : is UTF-16; save it as UTF-8"],
    ["is UTF-16 without a mark", Buffer.from("{}", "utf16le"), "nodes/x.json:1:1: : is UTF-16"],
    [
      "is not UTF-8",
      Buffer.from('{\n "address": "a\xff"}', "latin1"),
      "nodes/x.json:2:15: : is not valid UTF-8 here",
    ],
    ["is empty", " \n", "nodes/x.json:1:1: : is empty"],
    [
      "misses a comma",
      '{"a": 1\n"b": 2}',
      'nodes/x.json:2:1: : is not JSON: "," was expected (found "\\"b\\"")',
    ],
    ["is a list", "[]", "nodes/x.json:1:1: : found a list; must be an object"],
    ["is too deep", "[".repeat(200_000), "nodes/x.json:1:65: : nested deeper than 64 levels"],
    [
      "has __proto__",
      '{"address": "a", "labels": {"__proto__": "x"}}',
      'nodes/x.json:1:29: labels.__proto__: the key "__proto__" is not allowed',
    ],
    [
      "has a key twice",
      '{"address": "a",\n "address": "b"}',
      'nodes/x.json:2:2: address: duplicate key "address", first on line 1',
    ],
    [
      "has a zero byte",
      '{"address": "a", "labels": {"a": "\\u0000"}}',
      "nodes/x.json:1:34: labels.a: must not hold a zero byte",
    ],
    [
      "has half a pair",
      '{"address": "a", "labels": {"a": "\\ud800"}}',
      "nodes/x.json:1:34: labels.a: holds half of a surrogate pair",
    ],
  ])("that %s is refused at its place", async (_what, body, problem) => {
    expect(await withFile("nodes/x.json", body)).toContainEqual(expect.stringContaining(problem));
  });

  test("with a byte order mark, comments, trailing commas, $schema and a key named constructor is read", async () => {
    const text =
      '\ufeff{ // who\n "$schema": "x", "address": "10.0.0.1", /* why */ "labels": { "constructor": "x", }, }';
    const result = await check({ ...catalogueFiles(), "nodes/x.json": text });
    const node = result.ok ? result.catalogue.nodes.get("x") : undefined;
    expect(node?.labels.constructor).toBe("x");
    expect(Object.keys(node ?? {})).not.toContain("$schema");
    expect(node?.settings.constructor).toBeUndefined();
  });
});

test("PLN-4: an env value with a zero byte is refused with its path", async () => {
  expect(await module({ resources: [process({ env: { A: "x\u0000" } })] })).toEqual([
    expect.stringMatching(/^modules\/other\/module\.json:1:\d+: resources\[0\]\.env\.A: .*zero byte/),
  ]);
});

test("COM-4: account names that are too long, start with a digit or hold a dot are refused with the limit", async () => {
  const long = "a".repeat(39);
  const users = [`${long}b`, `${long}c`, "1st", "a.b"].map((name, i) => ({
    type: "user",
    id: `u${i}`,
    name,
  }));
  const problems = await module({ resources: users });
  expect(problems).toHaveLength(4);
  for (const problem of problems)
    expect(problem).toContain("must be 1 to 32 characters of a-z, 0-9, _ and -");
});

test.each(["a.b", "a_b.c", "Abc", "-a", "a$", "ü", "", "9.9", "a b"])(
  "COM-4: an account %j without an id is refused by the rule of accounts, not as an id",
  async (name) => {
    for (const type of ["user", "group"]) {
      const problems = await module({ resources: [{ type, name }] });
      expect(problems).toEqual([
        expect.stringContaining(
          `found ${JSON.stringify(name)}; must be 1 to 32 characters of a-z, 0-9, _ and -, the first a letter or _`,
        ),
      ]);
    }
  },
);

test("FIL-5: a home may be /", async () => {
  expect(await module({ resources: [{ type: "user", name: "a", home: "/", shell: "/bin/sh" }] })).toEqual([]);
});

test.each(["/srv/a:b", "/srv/a\nb", "srv", "/srv/../a", "/srv/"])(
  "COM-4: a home or shell %j, which useradd refuses, is refused",
  async (path) => {
    for (const key of ["home", "shell"]) {
      const problems = await module({ resources: [{ type: "user", name: "a", [key]: path }] });
      expect(problems).toEqual([
        expect.stringMatching(/must be an absolute path|no colon and no control character/),
      ]);
    }
  },
);

test("LNK-6: a node name that is too long for the files named after it is refused with the limit", async () => {
  const fits = [...Array(4).fill("a".repeat(48)), "b".repeat(4)].join(".");
  expect(fits).toHaveLength(200);
  const problems = await problemsOf({
    ...catalogueFiles(),
    [`nodes/${fits}.json`]: { address: "10.0.0.1" },
    [`nodes/${fits}b.json`]: { address: "10.0.0.1" },
  });
  expect(problems).toEqual([expect.stringMatching(/b{5}" is no name of a node; .*at most 200 in all/)]);
});

test("LNK-6: node names that could be wildcards, paths or look alike are refused by name", async () => {
  const names = ["web 01", "a..b", "prod>", "*", "münchen", "a_b"];
  const files = Object.fromEntries(names.map((n) => [`nodes/${n}.json`, { address: "10.0.0.1" }]));
  const problems = await problemsOf({
    ...catalogueFiles(),
    ...files,
    "nodes/a.b.json": { address: "10.0.0.1" },
  });
  expect(problems).toHaveLength(names.length);
  for (const name of names)
    expect(problems).toContainEqual(
      expect.stringContaining(`nodes/${name}.json:0:0: : ${JSON.stringify(name)} is no name`),
    );
});

describe("what is not there yet is refused by name", () => {
  test.each<[string, object, string]>([
    [
      "containers",
      { resources: [{ type: "container", name: "x", image: "y" }] },
      "containers are not there yet",
    ],
    ["replaces", { resources: [process({ replaces: ["old"] })] }, "replaces (handover) is not there yet"],
    ["update", { resources: [process({ update: "handover" })] }, 'update: "handover" is not there yet'],
    ["bundles", { bundles: { a: { from: "a", output: "b" } } }, "bundles are not there yet"],
    ["a bundle", { resources: [process({ bundle: "a" })] }, "bundles are not there yet"],
    [
      "a secret file",
      { resources: [{ type: "file", id: "f", path: "/f", secret: "s" }] },
      "secrets are not there yet",
    ],
    [
      "a secret to restart on",
      { resources: [process({ restartOn: ["secret:s"] })] },
      "secrets are not there yet",
    ],
    [
      "a secret in a text",
      { resources: [process({ env: { A: "${secret:s}" } })] },
      "${secret:…} (secrets) is not there yet",
    ],
  ])("%s", async (_what, manifest, problem) => {
    const problems = await module(manifest);
    expect(problems).toEqual([expect.stringContaining(problem)]);
  });

  test("secrets and signed commits of the mesh", async () => {
    expect(await withFile("secrets/a.age", "x")).toEqual([
      expect.stringContaining("secrets/a.age:0:0: : secrets are"),
    ]);
    expect(await withFile("mesh.json", { verify: {} })).toEqual([
      expect.stringContaining("signed commits (verify)"),
    ]);
    expect(await withFile("mesh.json", { needs: { host: "9.0.0" } })).toEqual([
      expect.stringContaining("needs host 9.0.0"),
    ]);
  });

  test("but not where a text says it literally", async () => {
    expect(await module({ resources: [process({ env: { A: "$${secret:s} ${other:x}" } })] })).toEqual([]);
  });
});

describe("inside a manifest", () => {
  test.each<[string, object, string]>([
    ["an unknown key", { resurces: [] }, 'resurces: unknown key "resurces"; did you mean "resources"?'],
    [
      "an unknown type",
      { resources: [{ type: "proces", name: "x" }] },
      'found "proces"; must be one of "group", "user", "directory", "file", "process"; did you mean "process"?',
    ],
    [
      "a mode that is a number",
      { resources: [{ type: "directory", id: "d", path: "/d", mode: 755 }] },
      'mode: found 755; must be an octal string such as "0644"',
    ],
    [
      "another name than its folder",
      { name: "othr" },
      'name: found "othr"; must be the name of its folder, "other"',
    ],
    [
      "an id twice",
      {
        resources: [
          { type: "user", name: "a" },
          { type: "group", name: "a" },
        ],
      },
      'the id "a" is that of resources[0] ("user") already',
    ],
    [
      "the id of its state",
      { state: {}, resources: [{ type: "directory", id: "state", path: "/d" }] },
      `the id "state" is that of the module's state already`,
    ],
    [
      "a name that is no id",
      { resources: [{ type: "user", name: "my_user" }] },
      'the name "my_user" cannot serve as id; give an "id"',
    ],
    [
      "an unknown requirement",
      { resources: [process({ requires: ["servr"] })] },
      'unknown id "servr"; did you mean "server"?',
    ],
    [
      "itself as requirement",
      { resources: [process({ requires: ["server"] })] },
      '"server" is the resource itself',
    ],
    [
      "an unknown foreign id",
      { resources: [process({ restartOn: ["base.motdd"] })] },
      'unknown id "base.motdd"; did you mean "motd"?',
    ],
    [
      "an unknown foreign module",
      { resources: [process({ restartOn: ["bas.motd"] })] },
      'unknown module "bas"; did you mean "base"?',
    ],
    [
      "an environment from no file",
      { resources: [process({ envFrom: ["u"] }), { type: "user", name: "u" }] },
      '"u" is a user; must be a file of KEY=VALUE lines',
    ],
    [
      "a schedule for a service",
      { resources: [process({ schedule: "* * * * *" })] },
      'schedule goes with "run": "once" only',
    ],
    [
      "a schedule of six fields",
      { resources: [process({ run: "once", schedule: "* * * * * *" })] },
      "must be five fields",
    ],
    [
      "a schedule out of range",
      { resources: [process({ run: "once", schedule: "61 * * * *" })] },
      "Invalid value for minute: 61",
    ],
    [
      "a schedule that never comes",
      { resources: [process({ run: "once", schedule: "0 0 31 2 *" })] },
      "never comes due",
    ],
    [
      "two bodies",
      { resources: [{ type: "file", id: "f", path: "/f", content: "", source: "module.json" }] },
      "found content and source",
    ],
    ["no body", { resources: [{ type: "file", id: "f", path: "/f" }] }, "found none"],
    [
      "a source outside",
      { resources: [{ type: "file", id: "f", path: "/f", source: "../base/module.json" }] },
      'without ".."',
    ],
    [
      "a source that is absent",
      { resources: [{ type: "file", id: "f", path: "/f", source: "modul.json" }] },
      'there is no "modul.json" in the module; did you mean "module.json"?',
    ],
    [
      "a seat without port",
      { seats: { s: { port: "htp" } }, ports: { http: 1 } },
      'unknown port "htp"; did you mean "http"?',
    ],
    [
      "a seat of another",
      { seats: { greeter: { port: "http" } }, ports: { http: 1 } },
      'the seat "greeter" is held by module "other" already',
    ],
    [
      "a default of another type",
      { settings: { a: { type: "int", default: "1" } } },
      'found "1"; must be a whole number',
    ],
    ["a required module that is unknown", { requires: ["wep"] }, 'unknown module "wep"; did you mean "web"?'],
    [
      "a required module of a higher tier",
      { tier: 0, requires: ["web"] },
      '"web" is of tier 2; a module of tier 0',
    ],
  ])("%s is refused with what is right", async (_what, manifest, problem) => {
    expect(await module(manifest)).toEqual([expect.stringContaining(problem)]);
  });

  test("a template that is not text is refused, other bytes are not", async () => {
    const manifest = (template: boolean) => ({
      "modules/other/module.json": {
        name: "other",
        resources: [{ type: "file", id: "f", path: "/f", source: "b", template }],
      },
      "modules/other/b": Buffer.from([0xff, 0xfe]),
    });
    expect(await problemsOf({ ...catalogueFiles(), ...manifest(true) })).toEqual([
      expect.stringContaining('"b" is not UTF-8 text'),
    ]);
    expect(await problemsOf({ ...catalogueFiles(), ...manifest(false) })).toEqual([]);
  });
});

describe("between files", () => {
  test.each<[string, string, object, string]>([
    [
      "an unknown module of a node",
      "nodes/x.json",
      { address: "a", modules: ["wbe"] },
      'nodes/x.json:1:27: modules[0]: unknown module "wbe"; did you mean "web"?',
    ],
    [
      "an unknown module of a group",
      "groups/x.json",
      { modules: ["wbe"] },
      'groups/x.json:1:13: modules[0]: unknown module "wbe"',
    ],
    [
      "settings of an unknown module",
      "mesh.json",
      { settings: { wbe: {} } },
      'mesh.json:1:14: settings.wbe: unknown module "wbe"',
    ],
    [
      "an unknown setting",
      "nodes/x.json",
      { address: "a", settings: { web: { greting: "x" } } },
      'unknown setting "greting"; did you mean "greeting"?',
    ],
    [
      "a setting of another type",
      "groups/x.json",
      { settings: { web: { workers: 1.5 } } },
      "found 1.5; must be a whole number",
    ],
    [
      "settings of a module named constructor",
      "mesh.json",
      { settings: { constructor: {} } },
      'unknown module "constructor"',
    ],
  ])("%s is refused with the nearest name", async (_what, file, body, problem) => {
    expect(await withFile(file, body)).toEqual([expect.stringContaining(problem)]);
  });

  test("files and folders of other names are refused; dot files and README.md are left alone", async () => {
    const problems = await problemsOf({
      ...catalogueFiles(),
      "nodes/.gitkeep": "",
      "modules/README.md": "",
      "nodes/x.jsn": "{}",
      "nodes/deep/x.json": "{}",
      "modules/file": "",
      "modules/empty/file": "",
      "modules/named/Module.json": "{}",
      "modules/Bad_Name/module.json": "{}",
    });
    expect(problems.map((p) => p.split(": ")[0])).toEqual([
      "modules/Bad_Name:0:0",
      "modules/empty:0:0",
      "modules/file:0:0",
      "modules/named:0:0",
      "nodes/deep:0:0",
      "nodes/x.jsn:0:0",
    ]);
    expect(problems.join()).toContain("found Module.json, rename it");
  });

  test("all problems of a commit are listed at once, in order", async () => {
    const problems = await problemsOf({
      ...catalogueFiles(),
      "nodes/a.json": { adress: "x", modules: ["nope"] },
      "modules/web/module.json": "{",
      "mesh.json": { nam: 1 },
    });
    expect(problems.map((p) => p.split(":")[0])).toEqual([
      "mesh.json",
      "modules/web/module.json",
      "nodes/a.json",
      "nodes/a.json",
      "nodes/a.json",
    ]);
  });
});

test("a module named constructor is a module like any other", async () => {
  const result = await check({
    ...catalogueFiles(),
    "modules/constructor/module.json": {
      name: "constructor",
      settings: { constructor: 1 },
      requires: ["base"],
    },
    "nodes/x.json": { address: "a", modules: ["constructor"], settings: { constructor: { constructor: 2 } } },
  });
  expect(result).toMatchObject({ ok: true });
});

test("locate finds the place of a path in every kind of file", async () => {
  const result = await check(catalogueFiles());
  if (!result.ok) throw new Error("refused");
  const { catalogue } = result;
  expect(catalogue.locate("modules/web/module.json", ["requires", 0])).toEqual({ line: 1, column: 27 });
  expect(catalogue.locate("nodes/web-1.json", ["modules", 7])).toEqual({ line: 1, column: 59 });
  expect(catalogue.locate("mesh.json", ["host"])).toEqual({ line: 1, column: 1 });
  expect(catalogue.locate("groups/nope.json", [])).toEqual({ line: 1, column: 1 });
});

test("a merge of one module reads the trees above it and its own objects, and nothing else", async () => {
  const objects = new MemoryObjects();
  const reader = new TreeReader(objects);
  const files: Files = catalogueFiles();
  for (let i = 0; i < 200; i++) files[`modules/m${i}/module.json`] = { name: `m${i}` };
  const about = { commit: null, subject: "" };
  await reader.read(objects.add(files), about);
  objects.reads = [];
  files["modules/m7/module.json"] = { name: "m7", description: "changed" };
  expect(await reader.read(objects.add(files), about)).toMatchObject({ ok: true });
  expect(objects.reads).toHaveLength(4);
  objects.reads = [];
  await reader.read(objects.add(files), about);
  expect(objects.reads).toEqual([]);
});

describe("for any input", () => {
  const shuffled = (value: unknown, seed: number): unknown => {
    if (Array.isArray(value)) return value.map((v) => shuffled(v, seed));
    if (typeof value !== "object" || value === null) return value;
    const keys = Object.keys(value).sort(
      (a, b) => ((a.length * seed) % 7) - ((b.length * seed) % 7) || (a < b ? -1 : 1),
    );
    return Object.fromEntries(
      (seed % 2 ? keys.reverse() : keys).map((k) => [
        k,
        shuffled((value as Record<string, unknown>)[k], seed),
      ]),
    );
  };

  test("the order of keys and files does not matter", async () => {
    const read = async (files: Files) => {
      const result = await check(files);
      if (!result.ok) throw new Error("refused");
      const { mesh, groups, nodes, modules } = result.catalogue;
      return JSON.stringify([
        mesh,
        [...groups],
        [...nodes],
        [...modules].map(([n, m]) => [n, m.manifest, [...m.sources]]),
      ]);
    };
    const straight = await read(catalogueFiles());
    await fc.assert(
      fc.asyncProperty(fc.nat(), fc.nat(), async (seed, turn) => {
        const entries = Object.entries(catalogueFiles()).map(([k, v]) => [k, shuffled(v, seed)] as const);
        const by = turn % entries.length;
        const files = Object.fromEntries([...entries.slice(by), ...entries.slice(0, by)]) as Files;
        expect(await read(files)).toBe(straight);
      }),
      { numRuns: 40 },
    );
  });

  const place = fc.constantFrom(
    "mesh.json",
    "groups/all.json",
    "nodes/web-1.json",
    "modules/web/module.json",
  );

  test("random bytes and random JSON give problems, never a crash", async () => {
    const garbage = fc.oneof(
      fc.uint8Array({ maxLength: 200 }).map((b) => Buffer.from(b)),
      fc.string({ unit: "binary" }),
      fc.json().filter((text) => !/^\s*\{\s*\}\s*$/.test(text)),
    );
    await fc.assert(
      fc.asyncProperty(place, garbage, async (file, body) => {
        const problems = await withFile(file, body as string | Buffer);
        expect(problems.length).toBeGreaterThan(0);
      }),
      { numRuns: 300 },
    );
  });

  test("one value of a valid file replaced by anything never crashes, and what is found is placed inside the file", async () => {
    const anything = fc.jsonValue({ maxDepth: 2 });
    await fc.assert(
      fc.asyncProperty(place, fc.nat(), anything, async (file, at, value) => {
        const body = structuredClone(catalogueFiles()[file] as object);
        replaceAt(body, at, value);
        const text = JSON.stringify(body, null, 1);
        const result = await check({ ...catalogueFiles(), [file]: text });
        for (const p of result.ok ? [] : result.problems.filter((one) => one.file === file)) {
          const line = text.split("\n")[p.line - 1] ?? "";
          expect(p.column).toBeGreaterThan(0);
          expect(p.column).toBeLessThanOrEqual(line.length + 1);
        }
      }),
      { numRuns: 400 },
    );
  });
});

/** Puts `value` in the place of the n-th value of a document, counted over all depths. */
function replaceAt(root: object, n: number, value: unknown): void {
  const places: Array<[Record<string, unknown>, string]> = [];
  const walk = (at: object) => {
    for (const [key, inner] of Object.entries(at)) {
      places.push([at as Record<string, unknown>, key]);
      if (typeof inner === "object" && inner !== null) walk(inner);
    }
  };
  walk(root);
  const [owner, key] = places[n % places.length] as [Record<string, unknown>, string];
  owner[key] = value;
}
