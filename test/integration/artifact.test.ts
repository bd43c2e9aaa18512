import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, test } from "vitest";

const root = fileURLToPath(new URL("../..", import.meta.url));
const manifest = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as {
  files: string[];
  bin: Record<string, string>;
  version: string;
};
const SOURCES = ["package.json", "package-lock.json", "tsconfig.json", "scripts", "src"];
const PACKED = manifest.files.filter((name) => name !== "dist");

interface Locked {
  dev?: boolean;
  optional?: boolean;
  devOptional?: boolean;
  hasInstallScript?: boolean;
}
const lock = JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8")) as {
  packages: Record<string, Locked>;
};
/** What the product cannot do without: neither for development nor optional. */
const needed = Object.entries(lock.packages).filter(
  ([path, { dev, optional, devOptional }]) => path !== "" && !dev && !optional && !devOptional,
);

let dir: string;
beforeAll(() => {
  dir = mkdtempSync(join(tmpdir(), "mesh-artifact-"));
});
afterAll(() => rmSync(dir, { recursive: true, force: true }));

const nativeFiles = (folder: string) =>
  readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((path) =>
    /\.node$|binding\.gyp$/.test(path),
  );

/** Only node itself is found: no compiler, no registry, nothing of this environment. */
function bare(args: string[], cwd: string): string {
  const env = { PATH: dirname(process.execPath), HOME: dir, npm_config_offline: "true" };
  return execFileSync(process.execPath, args, { cwd, env, encoding: "utf8" });
}

test("BLD-3: a clean copy builds without compiler and registry, and its artifact runs from an empty directory with no native file", () => {
  const copy = join(dir, "copy");
  mkdirSync(copy);
  for (const name of [...SOURCES, ...PACKED]) cpSync(join(root, name), join(copy, name), { recursive: true });
  symlinkSync(join(root, "node_modules"), join(copy, "node_modules"));
  bare(["scripts/build.mjs"], copy);

  // What npm packs, with no package beside it: the optional ones are missing, and all that is needed is inside.
  const product = join(dir, "installed", "mesh");
  for (const name of ["package.json", ...manifest.files])
    cpSync(join(copy, name), join(product, name), { recursive: true });
  expect(nativeFiles(product)).toEqual([]);
  const empty = join(dir, "empty");
  mkdirSync(empty);
  expect(Object.keys(manifest.bin).sort()).toEqual(["mesh", "mesh-controller", "mesh-host"]);
  for (const program of Object.values(manifest.bin))
    expect(bare([join(product, program), "--version"], empty)).toBe(`${manifest.version}\n`);
  // A command that loads much of the product, not only its version.
  expect(bare([join(product, "dist", "mesh.js"), "check", join(product, "examples-repo")], empty)).toContain(
    "is good",
  );
  expect(readdirSync(empty)).toEqual([]);
}, 120_000);

test("BLD-3: nothing that is needed has a native file or a script to run at its installation", () => {
  expect(needed.length).toBeGreaterThan(5);
  expect(needed.filter(([, { hasInstallScript }]) => hasInstallScript).map(([path]) => path)).toEqual([]);
  expect(needed.flatMap(([path]) => nativeFiles(join(root, path)))).toEqual([]);
});
