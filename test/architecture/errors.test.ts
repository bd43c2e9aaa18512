import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { readSources, TOP } from "./sources.ts";

const DECLARED = /meshError\(\s*"([a-z0-9-]+)"|new MeshError\(\s*"([a-z0-9-]+)"/g;

test("every error code is documented in docs/errors.md, and none that does not exist", () => {
  const codes = new Set(
    readSources().flatMap((source) =>
      [...source.text.matchAll(DECLARED)].map((match) => match[1] ?? match[2]),
    ),
  );
  const text = readFileSync(join(TOP, "docs/errors.md"), "utf8");
  const documented = new Set([...text.matchAll(/^\| `([a-z0-9-]+)` \|/gm)].map((match) => match[1]));
  expect({
    undocumented: [...codes].filter((code) => !documented.has(code)).sort(),
    unknown: [...documented].filter((code) => !codes.has(code)).sort(),
  }).toEqual({ undocumented: [], unknown: [] });
});
