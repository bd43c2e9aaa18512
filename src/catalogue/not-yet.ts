import type { Document, FileProblem, JsonPath } from "./parse.ts";
import { entriesOf, isObject, itemsOf } from "./raw.ts";

/** What the catalogue's contract has and this release cannot do: refused by name, so that nobody waits for it in vain. */
const TYPES: Record<string, string> = { container: "containers" };
const PLACEHOLDER = /\$\$\{|\$\{(secret|bundle):/g;

const sentence = (what: string) => `${what} not there yet in this release`;

export function notYetInMesh(document: Document): FileProblem[] {
  const { value } = document;
  if (!isObject(value)) return [];
  const problems: FileProblem[] = [];
  if (isObject(value.secrets) && itemsOf(value.secrets.recipients).length > 0)
    problems.push(document.problem(["secrets", "recipients"], sentence("secrets are")));
  if (value.verify !== undefined && value.verify !== null)
    problems.push(document.problem(["verify"], sentence("signed commits (verify) are")));
  return problems;
}

export function notYetInModule(document: Document): FileProblem[] {
  const { value } = document;
  if (!isObject(value)) return [];
  const problems: FileProblem[] = [];
  if (entriesOf(value.bundles).length > 0)
    problems.push(document.problem(["bundles"], sentence("bundles are"), "key"));
  itemsOf(value.resources).forEach((resource, i) => {
    if (isObject(resource)) problems.push(...notYetInResource(document, ["resources", i], resource));
  });
  return problems;
}

/** The refusal of a resource type that a later release will know; null for any other. */
export function notYetType(type: unknown): string | null {
  const what = typeof type === "string" && Object.hasOwn(TYPES, type) ? TYPES[type] : undefined;
  return what ? `type ${JSON.stringify(type)}: ${sentence(`${what} are`)}` : null;
}

function notYetInResource(document: Document, at: JsonPath, r: Record<string, unknown>): FileProblem[] {
  const problems: FileProblem[] = [];
  const refuse = (key: string, what: string) =>
    problems.push(document.problem([...at, key], sentence(what), "key"));
  if (notYetType(r.type)) return problems;
  if (itemsOf(r.replaces).length > 0) refuse("replaces", "replaces (handover) is");
  if (r.update === "handover") refuse("update", 'update: "handover" is');
  if (r.bundle !== undefined) refuse("bundle", "bundles are");
  if (r.type === "file" && r.secret !== undefined) refuse("secret", "secrets are");
  for (const key of ["restartOn", "reloadOn"])
    itemsOf(r[key]).forEach((ref, i) => {
      if (typeof ref === "string" && ref.startsWith("secret:"))
        problems.push(document.problem([...at, key, i], sentence("secrets are")));
    });
  // Most files hold no such placeholder, and none that an escape could hide.
  if (!/\$\{(secret|bundle):|\\u/.test(document.text)) return problems;
  for (const [path, text] of texts(r, at))
    for (const kind of notYetPlaceholders(text))
      if (!(r.template === false && path[at.length] === "content"))
        problems.push(document.problem(path, sentence(`\${${kind}:…} (${kind}s) is`)));
  return problems;
}

/** Which of `secret` and `bundle` a text asks for; `$${` is a literal `${`. */
export function notYetPlaceholders(text: string): Set<string> {
  if (!text.includes("${")) return new Set();
  return new Set([...text.matchAll(PLACEHOLDER)].flatMap((m) => (m[1] ? [m[1]] : [])));
}

function texts(value: unknown, at: JsonPath): Array<[JsonPath, string]> {
  if (typeof value === "string") return [[at, value]];
  if (Array.isArray(value)) return value.flatMap((item, i) => texts(item, [...at, i]));
  return entriesOf(value).flatMap(([key, item]) => texts(item, [...at, key]));
}
