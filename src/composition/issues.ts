import type { Catalogue, Problem } from "../catalogue/catalogue.ts";

/** A problem before its position is looked up: kept with memoised work, whose file may move meanwhile. */
export interface Issue {
  file: string;
  path: ReadonlyArray<string | number>;
  message: string;
  /** Holds whatever stands in the files that could not be read: told of a refused catalogue too. */
  certain?: true;
}

export const moduleFile = (name: string) => `modules/${name}/module.json`;
export const nodeFile = (name: string) => `nodes/${name}.json`;
export const groupFile = (name: string) => `groups/${name}.json`;

/** Issues as problems, each once, ordered by file, position and message. */
export function toProblems(issues: Iterable<Issue>, locate: Catalogue["locate"]): Problem[] {
  const seen = new Map<string, Problem>();
  for (const { file, path, message } of issues) {
    const key = `${file}\n${message}`;
    if (seen.has(key)) continue;
    const { line, column } = locate(file, path);
    seen.set(key, { file, line, column, path: pathText(path), message });
  }
  return [...seen.values()].sort(byPlace);
}

function byPlace(a: Problem, b: Problem): number {
  return (
    compareText(a.file, b.file) || a.line - b.line || a.column - b.column || compareText(a.message, b.message)
  );
}

/** Order by code unit: the same on every machine, whatever its locale. */
export function compareText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** `["resources", 2, "mode"]` as `resources[2].mode`. */
export function pathText(path: ReadonlyArray<string | number>): string {
  let text = "";
  for (const part of path) {
    if (typeof part === "number") text += `[${part}]`;
    else text += text === "" ? part : `.${part}`;
  }
  return text;
}
