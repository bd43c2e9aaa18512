import { isUtf8 } from "node:buffer";
import { createHash } from "node:crypto";
import type { SourceFile } from "./catalogue.ts";
import { sourcePathProblem } from "./check-module.ts";
import { suggestion } from "./nearest.ts";
import { notYetPlaceholders } from "./not-yet.ts";
import type { Objects } from "./objects.ts";
import { type FileProblem, formatPath, type JsonPath, locate } from "./parse.ts";
import { isObject, itemsOf } from "./raw.ts";
import type { ReadFile } from "./validate.ts";

/** Bodies up to this size are kept in memory and travel inside the declaration. Bytes. */
const SMALL = 8 * 1024;

/** Source files that were read before, by object id. */
export type SourceMemo = ReadonlyMap<string, SourceFile>;

/** Reads the files that a manifest's `source` fields name. `files` are those of the module, path to object id. */
export async function readSources(
  objects: Objects,
  read: ReadFile<unknown>,
  files: ReadonlyMap<string, string>,
  memo: SourceMemo,
): Promise<{ files: Map<string, SourceFile>; problems: FileProblem[] }> {
  const found = new Map<string, SourceFile>();
  const problems: FileProblem[] = [];
  for (const { path, source, template } of sourcesOf(read.raw)) {
    const refuse = (message: string) =>
      problems.push({ ...locate(read.text, path), path: formatPath(path), message });
    if (sourcePathProblem(source)) continue;
    const oid = files.get(source);
    if (oid === undefined) {
      refuse(missing(source, files));
      continue;
    }
    const file = await readSource(objects, oid, template, found.get(source) ?? memo.get(oid));
    found.set(source, file);
    if (!template || !file.bytes) continue;
    if (!isUtf8(file.bytes) || file.bytes.includes(0))
      refuse(`${JSON.stringify(source)} is not UTF-8 text; a template must be`);
    else
      for (const kind of notYetPlaceholders(file.bytes.toString("utf8")))
        refuse(`${JSON.stringify(source)} holds \${${kind}:…}: ${kind}s are not there yet in this release`);
  }
  return { files: found, problems };
}

function sourcesOf(raw: unknown): Array<{ path: JsonPath; source: string; template: boolean }> {
  if (!isObject(raw)) return [];
  return itemsOf(raw.resources).flatMap((resource, i) =>
    isObject(resource) && resource.type === "file" && typeof resource.source === "string"
      ? [{ path: ["resources", i, "source"], source: resource.source, template: resource.template === true }]
      : [],
  );
}

async function readSource(
  objects: Objects,
  oid: string,
  template: boolean,
  before: SourceFile | undefined,
): Promise<SourceFile> {
  if (before && before.oid === oid && (before.bytes || !template)) return before;
  const bytes = await objects.readBlob(oid);
  return {
    oid,
    sha256: createHash("sha256").update(bytes).digest("hex"),
    size: bytes.length,
    bytes: template || bytes.length <= SMALL ? bytes : null,
  };
}

function missing(source: string, files: ReadonlyMap<string, string>): string {
  const inside = [...files.keys()].some((path) => path.startsWith(`${source}/`));
  if (inside) return `${JSON.stringify(source)} is a folder; must be a file of the module`;
  return `there is no ${JSON.stringify(source)} in the module${suggestion(source, files.keys(), "files")}`;
}
