import type { z } from "zod";
import { VERSION } from "../version.ts";
import { checkModule } from "./check-module.ts";
import { notYetInMesh, notYetInModule, notYetType } from "./not-yet.ts";
import { type Document, type FileProblem, parseDocument } from "./parse.ts";
import { explain, schemaProblems } from "./problems.ts";
import { bare, isObject } from "./raw.ts";
import { GroupFile } from "./schema/group.ts";
import { MeshFile } from "./schema/mesh.ts";
import { ModuleFile } from "./schema/module.ts";
import { NodeFile } from "./schema/node.ts";

/**
 * One file, read. `raw` is its JSON (undefined when it is none), for checks that go on beside problems;
 * `value` is null when it has problems. `text` is kept to find places in it later.
 */
export interface ReadFile<T> {
  text: string;
  raw: unknown;
  value: T | null;
  problems: FileProblem[];
}

export type FileReader<T> = (bytes: Buffer, name: string) => ReadFile<T>;

export const readMeshFile: FileReader<MeshFile> = (bytes) =>
  read(bytes, MeshFile, (document) => [...notYetInMesh(document), ...tooNew(document)]);

export const readGroupFile: FileReader<GroupFile> = (bytes) => read(bytes, GroupFile, () => []);

export const readNodeFile: FileReader<NodeFile> = (bytes) => read(bytes, NodeFile, () => []);

export const readModuleFile: FileReader<ModuleFile> = (bytes, name) =>
  read(bytes, ModuleFile, (document) => [...notYetInModule(document), ...checkModule(document, name)]);

/** The settings of a mesh without a mesh.json. */
export function defaultMesh(): MeshFile {
  return bare(MeshFile.parse({}));
}

function read<T extends object>(
  bytes: Buffer,
  schema: z.ZodType<T>,
  check: (document: Document) => FileProblem[],
): ReadFile<T> {
  const document = parseDocument(bytes);
  const { text, value: raw } = document;
  if (raw === undefined) return { text, raw, value: null, problems: document.problems };
  const parsed = schema.safeParse(raw, { error: explain });
  const checked = check(document);
  const refused = new Set([...document.problems, ...checked].map((p) => p.path));
  // What a check says of a place is nearer the point than that its schema did not fit ("must be null").
  const shape = parsed.success
    ? []
    : withoutNotYet(document, schemaProblems(document, parsed.error)).filter((p) => !refused.has(p.path));
  const problems = [...document.problems, ...shape, ...checked];
  if (!parsed.success || problems.length > 0) return { text, raw, value: null, problems };
  const value = bare(parsed.data) as T & { $schema?: string };
  delete value.$schema;
  return { text, raw, value, problems };
}

/** A resource type that a later release will know is refused as such, not as an unknown word. */
function withoutNotYet(document: Document, problems: FileProblem[]): FileProblem[] {
  return problems.map((problem) => {
    const index = /^resources\[(\d+)\]\.type$/.exec(problem.path)?.[1];
    if (index === undefined || !isObject(document.value)) return problem;
    const resource = (document.value.resources as unknown[])[Number(index)];
    const refusal = isObject(resource) ? notYetType(resource.type) : null;
    return refusal ? { ...problem, message: `${refusal}; ${problem.message}` } : problem;
  });
}

function tooNew(document: Document): FileProblem[] {
  const needs = isObject(document.value) ? document.value.needs : undefined;
  if (!isObject(needs)) return [];
  return ["controller", "host"].flatMap((key) => {
    const wanted = needs[key];
    if (typeof wanted !== "string" || !newer(wanted, VERSION)) return [];
    return [
      document.problem(
        ["needs", key],
        `needs ${key} ${wanted}, newer than this release (${VERSION}); upgrade mesh first`,
      ),
    ];
  });
}

function newer(a: string, b: string): boolean {
  const parts = (v: string) => v.split(".").map((p) => Number.parseInt(p, 10));
  const [x, y] = [parts(a), parts(b)];
  for (let i = 0; i < 3; i++) {
    const difference = (x[i] ?? 0) - (y[i] ?? 0);
    if (difference !== 0) return difference > 0;
  }
  return false;
}
