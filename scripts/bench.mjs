// make bench: runs every bench/*.ts as a program of its own. Each prints JSON, a row a line; all rows go to bench/results.json.
import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const top = fileURLToPath(new URL("..", import.meta.url));
const only = process.argv.slice(2);
// Below node_modules, so that packages which stay outside of the bundle are found.
const dir = mkdtempSync(join(top, "node_modules", ".bench-"));
const rows = [];
try {
  const names = readdirSync(join(top, "bench"))
    .filter((name) => name.endsWith(".ts"))
    .map((name) => name.slice(0, -3))
    .filter((name) => only.length === 0 || only.includes(name));
  for (const name of names) {
    const outfile = join(dir, `${name}.mjs`);
    await build({
      entryPoints: [join(top, "bench", `${name}.ts`)],
      outfile,
      bundle: true,
      format: "esm",
      platform: "node",
      packages: "external",
      logLevel: "warning",
    });
    const { NODE_EXTRA_CA_CERTS, ...env } = process.env;
    const args = ["--expose-gc", "--enable-source-maps", outfile];
    const ran = spawnSync(process.execPath, args, {
      encoding: "utf8",
      stdio: ["ignore", "pipe", "inherit"],
      cwd: top,
      env: { MESH_DIST: join(top, "dist"), ...env },
    });
    process.stdout.write(ran.stdout);
    for (const line of ran.stdout.split("\n").filter((text) => text.startsWith("{"))) {
      rows.push({ bench: name, ...JSON.parse(line) });
    }
    if (ran.status !== 0) {
      console.error(`bench ${name} ended with ${ran.status ?? ran.signal}`);
      process.exitCode = 1;
    }
  }
  writeFileSync(
    join(top, "bench", "results.json"),
    `${JSON.stringify({ at: new Date().toISOString(), rows }, null, 2)}\n`,
  );
} finally {
  rmSync(dir, { recursive: true, force: true });
}
