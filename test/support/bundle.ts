import { mkdtempSync, rmSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

/**
 * A TypeScript program as one file that plain `node` runs, for tests that need a process of their own.
 * Below node_modules, so that it finds the packages that stay outside of it.
 */
export async function bundled(entry: string): Promise<{ file: string; remove(): void }> {
  const cache = fileURLToPath(new URL("../../node_modules/.cache", import.meta.url));
  await mkdir(cache, { recursive: true });
  const dir = mkdtempSync(join(cache, "mesh-test-"));
  const file = join(dir, "program.mjs");
  await build({
    entryPoints: [entry],
    outfile: file,
    bundle: true,
    format: "esm",
    platform: "node",
    packages: "external",
    logLevel: "warning",
  });
  return { file, remove: () => rmSync(dir, { recursive: true, force: true }) };
}
