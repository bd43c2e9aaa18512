import type { z } from "zod";
import type { Problem } from "./catalogue.ts";
import { nearest, suggestion } from "./nearest.ts";
import type { Document, FileProblem, JsonPath } from "./parse.ts";

/** What a zod issue carries here beside zod's own fields; filled by `explain` while the schema is still at hand. */
interface Issue {
  code?: string;
  path: PropertyKey[];
  message: string;
  expected?: string;
  values?: unknown[];
  keys?: string[];
  errors?: Issue[][];
  issues?: Issue[];
  options?: unknown[];
  discriminator?: string;
  origin?: string;
  minimum?: number;
  maximum?: number;
  /** Keys that the object has. */
  allowed?: string[];
  /** What a string must be, where another type was found. */
  hint?: string | null;
}

interface SchemaInside {
  _zod?: {
    def?: {
      shape?: object;
      checks?: Array<{ _zod?: { def?: { check?: string; error?: (i: unknown) => unknown } } }>;
    };
  };
}

/** Adds to each raw issue what only its schema knows: allowed keys, and what a text must be. Given to `safeParse` as `error`. */
export function explain(raw: unknown): undefined {
  const issue = raw as Issue & { inst?: SchemaInside };
  const def = issue.inst?._zod?.def;
  if (issue.code === "unrecognized_keys") issue.allowed = Object.keys(def?.shape ?? {});
  if (issue.code === "invalid_type" && issue.expected === "string") {
    const format = def?.checks?.find((c) => c._zod?.def?.check === "string_format");
    const hint = format?._zod?.def?.error?.(issue);
    issue.hint = typeof hint === "string" ? hint : null;
  }
  return undefined;
}

/** Every problem that a schema found in a document, each at its place. */
export function schemaProblems(document: Document, error: z.ZodError): FileProblem[] {
  return (error.issues as unknown as Issue[]).flatMap((issue) => fromIssue(document, issue, []));
}

function fromIssue(document: Document, issue: Issue, base: JsonPath): FileProblem[] {
  const path = [...base, ...issue.path] as Array<string | number>;
  if (issue.code === "unrecognized_keys")
    return (issue.keys ?? []).map((key) =>
      document.problem(
        [...path, key],
        `unknown key ${JSON.stringify(key)}${suggestion(key, issue.allowed ?? [], "allowed")}`,
        "key",
      ),
    );
  if (issue.code === "invalid_key") {
    const key = String(path.at(-1));
    const why = issue.issues?.[0]?.message ?? "is not allowed here";
    return [document.problem(path, `found the key ${JSON.stringify(key)}; a key here ${why}`, "key")];
  }
  const found = valueAt(document.value, path);
  if (issue.code === "invalid_union" && !issue.discriminator) {
    const inner = innerBranch(issue.errors ?? []);
    if (inner) return inner.flatMap((one) => fromIssue(document, one, path));
  }
  return [document.problem(path, `${foundText(found)}${allowedText(issue, found)}`)];
}

/** The branch of a union that was meant: the one that failed inside, not at its own type. */
function innerBranch(branches: Issue[][]): Issue[] | null {
  const meant = branches.filter((b) => b.every((i) => i.path.length > 0 || i.code === "unrecognized_keys"));
  return meant.sort((a, b) => a.length - b.length)[0] ?? null;
}

function allowedText(issue: Issue, found: unknown): string {
  switch (issue.code) {
    case "invalid_type":
      return issue.hint ?? `must be ${typeText(issue.expected)}`;
    case "invalid_value":
      return oneOf(issue.values ?? [], found);
    case "invalid_union":
      return issue.discriminator ? oneOf(issue.options ?? [], found) : eitherText(issue.errors ?? [], found);
    case "too_small":
      return sizeText("at least", issue.minimum, issue.origin);
    case "too_big":
      return sizeText("at most", issue.maximum, issue.origin);
    default:
      return issue.message;
  }
}

function eitherText(branches: Issue[][], found: unknown): string {
  const texts = branches.flatMap((branch) => branch.slice(0, 1).map((issue) => allowedText(issue, found)));
  const parts = [...new Set(texts.map((text) => text.replace(/^must be /, "")))];
  return `must be ${parts.join(" or ")}`;
}

function oneOf(values: unknown[], found: unknown): string {
  const list = values.map((v) => JSON.stringify(v));
  const near = typeof found === "string" ? nearest(found, values.map(String)) : null;
  const meant = near === null ? "" : `; did you mean ${JSON.stringify(near)}?`;
  return `must be ${list.length === 1 ? "" : "one of "}${list.join(", ")}${meant}`;
}

function sizeText(bound: string, size: number | undefined, origin: string | undefined): string {
  if (origin === "string") return `must have ${bound} ${size} characters`;
  if (origin === "array") return `must have ${bound} ${size} ${size === 1 ? "entry" : "entries"}`;
  return `must be ${bound} ${size}`;
}

const TYPES: Record<string, string> = {
  string: "a string",
  number: "a number",
  int: "a whole number",
  boolean: "true or false",
  array: "a list",
  object: "an object",
  record: "an object",
  null: "null",
};

function typeText(expected: string | undefined): string {
  return TYPES[expected ?? ""] ?? `a ${expected}`;
}

function foundText(found: unknown): string {
  return found === undefined ? "is missing; " : `found ${describe(found)}; `;
}

/** A value as a message shows it, at most 60 characters. */
export function describe(value: unknown): string {
  if (Array.isArray(value)) return "a list";
  if (typeof value === "object" && value !== null) return "an object";
  const text = JSON.stringify(value) ?? "nothing";
  return text.length > 60 ? `${text.slice(0, 57)}…` : text;
}

function valueAt(value: unknown, path: JsonPath): unknown {
  let at = value;
  for (const part of path) {
    if (typeof at !== "object" || at === null || !Object.hasOwn(at, part)) return undefined;
    at = (at as Record<string | number, unknown>)[part];
  }
  return at;
}

/** In the order that people read: by file, then by place. The same problem is shown once. */
export function sorted(problems: readonly Problem[]): Problem[] {
  const compare = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0);
  const all = [...problems].sort(
    (a, b) =>
      compare(a.file, b.file) || a.line - b.line || a.column - b.column || compare(a.message, b.message),
  );
  return all.filter((p, i) => {
    const q = all[i - 1];
    return !(q && q.file === p.file && q.line === p.line && q.column === p.column && q.message === p.message);
  });
}
