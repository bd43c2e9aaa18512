import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";

export const TOP = fileURLToPath(new URL("../..", import.meta.url));

/** One file of src/: its path from src, its text, and the files of src that it imports. `types` are imports of types only. */
export interface Source {
  path: string;
  text: string;
  imports: string[];
  values: string[];
}

const IMPORT = /(?:^|\n)\s*(import|export)\s+(type\s+)?[^;"']*?from\s+"(\.[^"]+)"|\bimport\("(\.[^"]+)"\)/g;

export function readSources(): Source[] {
  const src = join(TOP, "src");
  return readdirSync(src, { recursive: true, encoding: "utf8" })
    .filter((path) => path.endsWith(".ts"))
    .map((path) => {
      const file = join(src, path);
      const text = readFileSync(file, "utf8");
      const found = [...text.matchAll(IMPORT)].map((match) => ({
        to: relative(src, resolve(dirname(file), (match[3] ?? match[4]) as string)),
        type: match[2] !== undefined,
        lazy: match[4] !== undefined,
      }));
      return {
        path,
        text,
        imports: found.map((one) => one.to).filter((to) => to.endsWith(".ts")),
        values: found.filter((one) => !one.type && !one.lazy).map((one) => one.to),
      };
    });
}

/** The first part of a path from src: "plan" of "plan/decide.ts", "context.ts" of itself. */
export function folderOf(path: string): string {
  return path.split("/")[0] as string;
}
