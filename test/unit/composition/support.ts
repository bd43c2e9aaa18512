import { expect } from "vitest";
import { compose } from "../../../src/composition/compose.ts";
import type { DeclarationBody } from "../../../src/declaration/schema.ts";
import type { DeclaredResource } from "../../../src/resources/declared.ts";
import { aCatalogue, type CatalogueParts } from "../../support/catalogue.ts";

/** Composes parts that must have no problem. */
export function composed(parts: CatalogueParts, facts?: Parameters<typeof compose>[1]) {
  const composition = compose(aCatalogue(parts), facts);
  expect(composition.problems).toEqual([]);
  return composition;
}

export function bodyOf(parts: CatalogueParts, node: string): DeclarationBody {
  return composed(parts).nodes.get(node)!.body;
}

/** Messages of the problems of parts that have some. */
export function problemsOf(parts: CatalogueParts): string[] {
  return compose(aCatalogue(parts)).problems.map((p) => `${p.file} ${p.path}: ${p.message}`);
}

export function resource<T extends DeclaredResource["type"]>(body: DeclarationBody, id: string, _type: T) {
  const found = body.resources.find((r) => r.id === id);
  expect(found?.type, `${id} of ${body.resources.map((r) => r.id).join(", ")}`).toBe(_type);
  return found as Extract<DeclaredResource, { type: T }>;
}

export const aFile = (id: string, path: string, content: string | string[] = "x", more = {}) => ({
  id,
  type: "file",
  path,
  content,
  ...more,
});
export const aProcess = (name: string, more = {}) => ({
  type: "process",
  name,
  command: ["./server"],
  ...more,
});
