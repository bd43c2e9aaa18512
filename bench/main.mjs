// Bundles the measurements, runs each as a process of its own, prints a table and writes bench/results.json.
// MESH_BENCH_SCALE=0.1 runs a tenth of the sizes. Names as arguments run only those: `node bench/main.mjs read host`.
import { spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { cpus, loadavg } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const root = fileURLToPath(new URL("..", import.meta.url));
const ALL = ["read", "composition", "publishing", "host", "cli", "push", "fleet", "large"];
const wanted = process.argv.slice(2);
const names = wanted.length > 0 ? ALL.filter((name) => wanted.includes(name)) : ALL;
const LONGEST_MS = 240_000;

mkdirSync(join(root, "node_modules/.cache"), { recursive: true });
const out = mkdtempSync(join(root, "node_modules/.cache/bench-"));
process.on("exit", () => rmSync(out, { recursive: true, force: true }));
await build({
  absWorkingDir: root,
  entryPoints: names.map((name) => `bench/${name}.ts`),
  outdir: out,
  outExtension: { ".js": ".mjs" },
  bundle: true,
  splitting: true,
  format: "esm",
  platform: "node",
  packages: "external",
  logLevel: "warning",
});

const startedAt = Date.now();
const rows = [];
let failed = false;
for (const name of names) {
  process.stderr.write(`${name}…\n`);
  const from = Date.now();
  const load = loadavg()[0];
  const done = await run(name);
  for (const row of done.rows) rows.push({ bench: name, load: Number(load.toFixed(1)), ...judged(row) });
  if (done.code !== 0) failed = true;
  process.stderr.write(
    `${name}: ${((Date.now() - from) / 1000).toFixed(0)} s${done.code === 0 ? "" : `, failed (${done.code})`}\n`,
  );
}
const growth = growthOf(rows);
const result = {
  at: new Date(startedAt).toISOString(),
  seconds: Math.round((Date.now() - startedAt) / 1000),
  machine: { cpus: cpus().length, model: cpus()[0]?.model, node: process.version },
  scale: Number(process.env.MESH_BENCH_SCALE ?? "1"),
  rows,
  growth,
};
writeFileSync(join(root, "bench/results.json"), `${JSON.stringify(result, null, 2)}\n`);
print(rows, growth);
process.stdout.write(`\n${result.seconds} s; written to bench/results.json\n`);
process.exitCode = failed ? 1 : 0;

function run(name) {
  return new Promise((resolve) => {
    const child = spawn(process.execPath, ["--expose-gc", join(out, `${name}.mjs`)], {
      stdio: ["ignore", "pipe", "inherit"],
      timeout: LONGEST_MS,
    });
    let text = "";
    child.stdout.setEncoding("utf8").on("data", (chunk) => {
      text += chunk;
    });
    child.once("close", (code, signal) => {
      const lines = text.split("\n").filter((line) => line.startsWith("{"));
      resolve({ rows: lines.map((line) => JSON.parse(line)), code: code ?? signal });
    });
  });
}

function judged(row) {
  const ratio = row.limit ? row.value / row.limit.value : null;
  const met = row.reach ? (row.reach.of === "ratio" ? ratio : row.value) <= row.reach.value : null;
  return { ...row, ratio, met };
}

/** How a family's value grows from its smallest to its largest size. */
function growthOf(all) {
  const families = [...new Set(all.map(({ family }) => family).filter(Boolean))];
  return families.flatMap((family) => {
    const members = all.filter((row) => row.family === family).sort((a, b) => a.size - b.size);
    const [first, last] = [members[0], members.at(-1)];
    if (members.length < 2) return [];
    return [
      {
        family,
        size: [first.size, last.size],
        sizeGrows: last.size / first.size,
        valueGrows: last.value / first.value,
      },
    ];
  });
}

function print(all, grown) {
  const number = (value) =>
    value >= 100 ? value.toFixed(0) : value >= 10 ? value.toFixed(1) : value.toFixed(2);
  const table = all.map((row) => [
    row.row,
    `${number(row.value)} ${row.unit}`,
    row.limit ? `${number(row.limit.value)}  ${row.limit.what}` : "",
    row.ratio === null ? "" : `${number(row.ratio)}x`,
    row.reach ? `${row.reach.value}${row.reach.of === "ratio" ? "x" : ` ${row.unit}`}` : "",
    row.met === null ? "" : row.met ? "yes" : "MISSED",
    row.note ?? "",
  ]);
  const head = ["what", "measured", "limit, in the same run", "ratio", "reach", "met", ""];
  const widths = head.map((title, i) => Math.max(title.length, ...table.map((line) => line[i].length)));
  for (const line of [head, ...table])
    process.stdout.write(
      `${line
        .map((cell, i) => cell.padEnd(widths[i]))
        .join("  ")
        .trimEnd()}\n`,
    );
  process.stdout.write("\n");
  for (const { family, size, sizeGrows, valueGrows } of grown)
    process.stdout.write(
      `${family}: from ${size[0]} to ${size[1]} (${number(sizeGrows)}x) it takes ${number(valueGrows)}x\n`,
    );
}
