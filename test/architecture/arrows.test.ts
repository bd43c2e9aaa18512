import { expect, test } from "vitest";
import { folderOf, readSources } from "./sources.ts";

const sources = readSources();

/** What each folder may import beside itself, io/ and the files at the top of src (errors, context, version). */
const ALLOWED: Record<string, string[]> = {
  catalogue: ["resources"],
  resources: ["host"],
  composition: ["catalogue", "resources", "declaration"],
  plan: ["composition", "declaration", "catalogue", "resources", "inventory"],
  declaration: ["resources"],
  report: ["declaration"],
  inventory: ["plan", "composition", "declaration", "report", "catalogue", "resources"],
  host: ["declaration", "report", "resources", "verbs"],
  // Verbs are part of the link, as the declaration and the report are.
  verbs: ["declaration"],
  controller: [
    "catalogue",
    "composition",
    "plan",
    "declaration",
    "report",
    "inventory",
    "resources",
    "verbs",
  ],
  up: ["cli", "declaration", "resources"],
  cli: ["up", "catalogue", "composition", "plan", "declaration", "report", "resources", "verbs"],
  io: [],
  build: ["declaration"],
};
/** Composition and the wire take the pure side of a kind; a driver may know supervision, which runs its processes. */
const FINER: Array<{ from: RegExp; to: RegExp; why: string }> = [
  { from: /^composition\//, to: /^resources\/.*driver/, why: "composition takes the pure side of a kind" },
  { from: /^catalogue\//, to: /^resources\/.*driver/, why: "the catalogue takes the pure side of a kind" },
  { from: /^resources\/(?!.*driver)/, to: /^host\//, why: "only a driver knows the host" },
  { from: /^up\//, to: /^cli\/commands/, why: "up asks the mesh, it is no command" },
];

test("folders import only what the architecture allows them", () => {
  const wrong = sources.flatMap((source) =>
    source.imports
      .filter((to) => {
        const [from, into] = [folderOf(source.path), folderOf(to)];
        if (from === into || !into || into.endsWith(".ts") || into === "io" || from.endsWith(".ts"))
          return false;
        return !(ALLOWED[from] ?? []).includes(into);
      })
      .map((to) => `${source.path} imports ${to}`),
  );
  expect(wrong).toEqual([]);
});

test("finer arrows inside the allowed ones hold", () => {
  const wrong = sources.flatMap((source) =>
    source.imports.flatMap((to) =>
      FINER.filter((rule) => rule.from.test(source.path) && rule.to.test(to)).map(
        (rule) => `${source.path} imports ${to}: ${rule.why}`,
      ),
    ),
  );
  expect(wrong).toEqual([]);
});

test("host and controller never import each other", () => {
  const wrong = sources.filter(
    (source) =>
      (source.path.startsWith("host/") && source.imports.some((to) => to.startsWith("controller/"))) ||
      (source.path.startsWith("controller/") && source.imports.some((to) => to.startsWith("host/"))),
  );
  expect(wrong.map((source) => source.path)).toEqual([]);
});

/** The clock is a type and a formatter, not an outside system. */
const PURE_IO = new Set(["io/clock.ts"]);
const MAY_USE_IO = [
  /^io\//,
  /\/driver[^/]*\.ts$/,
  /\/main\.ts$/,
  /^host\//,
  /^resources\/[a-z]+\/(?!schema|declare|manifest)/,
  // What the drivers of files and directories share.
  /^resources\/owner\.ts$/,
  /^inventory\//,
  /^plan\/(store|work)\.ts$/,
  /^declaration\/(publish|receive|objects|streams|sign)\.ts$/,
  /^report\/(send|consume|queue|claim)[^/]*\.ts$/,
  /^verbs\//,
  /^controller\//,
  /^catalogue\//,
  /^up\//,
  /^cli\//,
];

test("only the ends of the product import io", () => {
  const wrong = sources.flatMap((source) =>
    MAY_USE_IO.some((pattern) => pattern.test(source.path))
      ? []
      : source.values
          .filter((to) => to.startsWith("io/") && !PURE_IO.has(to))
          .map((to) => `${source.path} imports ${to}`),
  );
  expect(wrong).toEqual([]);
});

test("io imports nothing of the domain", () => {
  const wrong = sources
    .filter((source) => source.path.startsWith("io/"))
    .flatMap((source) =>
      source.imports
        .filter((to) => !/^(io\/|errors\.ts)/.test(to))
        .map((to) => `${source.path} imports ${to}`),
    );
  expect(wrong).toEqual([]);
});

test("the decision of a plan, composition and the host's decision are pure", () => {
  const pure =
    /^(composition\/|plan\/(decide|guard|batches|tiers|model|merge|silence|rollout)\.ts|host\/decide\.ts)/;
  const wrong = sources
    .filter((source) => pure.test(source.path))
    .filter((source) =>
      /from "node:(fs|net|child_process|http|dns|worker)|Date\.now\(|Math\.random\(/.test(source.text),
    )
    .map((source) => source.path);
  expect(wrong).toEqual([]);
});
