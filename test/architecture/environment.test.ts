import { expect, test } from "vitest";
import { readSources } from "./sources.ts";

test("the environment is read only in files named config.ts", () => {
  const wrong = readSources()
    .filter((source) => !source.path.endsWith("config.ts") && /\bprocess\.env\b/.test(source.text))
    .map((source) => source.path);
  expect(wrong).toEqual([]);
});
