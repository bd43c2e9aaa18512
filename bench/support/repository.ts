import { execFileSync, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { benchModule } from "../compose.ts";

export type Files = Record<string, string>;

/** A bare repository that is written by `git fast-import`: ten thousand files take a second. */
export class BenchRepository {
  readonly top = mkdtempSync(join(tmpdir(), "mesh-bench-"));
  readonly dir = join(this.top, "catalogue.git");
  #commits = 0;

  constructor() {
    execFileSync("git", ["init", "-q", "--bare", "-b", "main", this.dir]);
  }

  /** Adds or replaces files of main and returns the commit. */
  commit(files: Files, message = "change"): string {
    this.#commits += 1;
    const head = [
      "commit refs/heads/main",
      `committer Bench <bench@example.org> ${1_700_000_000 + this.#commits} +0000`,
      `data ${Buffer.byteLength(message)}`,
      message,
      ...(this.#commits > 1 ? ["from refs/heads/main^0"] : []),
    ];
    const body = Object.entries(files).map(
      ([path, text]) => `M 100644 inline ${path}\ndata ${Buffer.byteLength(text)}\n${text}\n`,
    );
    const done = spawnSync("git", ["-C", this.dir, "fast-import", "--quiet"], {
      input: `${head.join("\n")}\n${body.join("")}\n`,
    });
    if (done.status !== 0) throw new Error(done.stderr.toString());
    return this.git("rev-parse", "main");
  }

  git(...args: string[]): string {
    return execFileSync("git", ["-C", this.dir, ...args], { encoding: "utf8", maxBuffer: 1 << 28 }).trim();
  }

  remove(): void {
    rmSync(this.top, { recursive: true, force: true });
  }
}

/** The catalogue of bench/compose.ts as files: each node has ten modules of five resources, of all tiers or of one. */
export function catalogueFiles(nodes: number, modules: number, mesh: object = {}, tier?: 0 | 1 | 2): Files {
  const files: Files = { "mesh.json": JSON.stringify({ name: "bench", ...mesh }) };
  for (let i = 0; i < modules; i++) files[modulePath(i)] = moduleText(i, "hello", tier);
  for (let n = 0; n < nodes; n++) {
    const placed = new Set(Array.from({ length: 10 }, (_, k) => `m${(n * 7 + k * 101) % modules}`));
    files[`nodes/n${n}.json`] = JSON.stringify({
      address: `10.${n >> 16}.${(n >> 8) & 255}.${n & 255}`,
      modules: [...placed],
    });
  }
  return files;
}

export const modulePath = (i: number): string => `modules/m${i}/module.json`;
export function moduleText(i: number, greeting = "hello", tier?: 0 | 1 | 2): string {
  const manifest = { name: `m${i}`, ...benchModule(`m${i}`, i, greeting) };
  return JSON.stringify(tier === undefined ? manifest : { ...manifest, tier });
}

/** The same as a plain folder. */
export function writeFolder(dir: string, files: Files): void {
  for (const [path, text] of Object.entries(files)) {
    const file = join(dir, path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, text);
  }
}
