import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { cleanEnvironment, distDir } from "../config.ts";
import { type Files, writeFolder } from "./repository.ts";

export const CLI = join(distDir, "mesh.js");

/** A whole mesh as `mesh up` makes it, and a clone that pushes to it. */
export interface BenchMesh {
  dir: string;
  work: string;
  context: string;
  git(...args: string[]): string;
  write(files: Files): void;
  pid(part: string): number;
  close(): void;
}

export function aMesh(files: Files): BenchMesh {
  const top = mkdtempSync(join(tmpdir(), "mesh-bench-"));
  const [dir, work, catalogue] = [join(top, "mesh"), join(top, "work"), join(top, "catalogue")];
  writeFolder(catalogue, files);
  const env = {
    ...cleanEnvironment(),
    GIT_CONFIG_GLOBAL: "/dev/null",
    GIT_CONFIG_SYSTEM: "/dev/null",
  };
  const mesh = (...args: string[]) => spawnSync(process.execPath, [CLI, ...args], { env, encoding: "utf8" });
  const up = mesh("up", "--catalogue", catalogue, "--dir", dir, "--detach");
  if (up.status !== 0) throw new Error(`mesh up: ${up.stdout}${up.stderr}`);
  const git = (...args: string[]) =>
    execFileSync("git", ["-c", "user.name=Bench", "-c", "user.email=bench@example.org", ...args], {
      cwd: args[0] === "clone" ? top : work,
      env,
      encoding: "utf8",
      stdio: ["ignore", "pipe", "pipe"],
    }).trim();
  git("clone", "-q", join(dir, "catalogue.git"), work);
  return {
    dir,
    work,
    context: join(dir, "context.json"),
    git,
    write: (changed) => writeFolder(work, changed),
    pid: (part) => Number.parseInt(readFileSync(join(dir, "run", `${part}.pid`), "utf8"), 10),
    close() {
      mesh("down", "--dir", dir, "--purge");
      rmSync(top, { recursive: true, force: true });
    },
  };
}

/** A repository that nobody watches, and how long a push to it takes: what git itself costs. */
export function bareTwin(mesh: BenchMesh): { push(): number; remove(): void } {
  const top = mkdtempSync(join(tmpdir(), "mesh-bench-"));
  const bare = join(top, "twin.git");
  execFileSync("git", ["clone", "-q", "--bare", mesh.work, bare]);
  return {
    push() {
      const from = performance.now();
      mesh.git("push", "-q", bare, "HEAD:main");
      return performance.now() - from;
    },
    remove: () => rmSync(top, { recursive: true, force: true }),
  };
}

/** One write and fsync of a page, ms: what durable storage costs here now. */
export function fsyncTime(dir: string): number {
  const file = join(dir, "fsync-probe");
  const from = performance.now();
  writeFileSync(file, "x".repeat(4096), { flush: true });
  const took = performance.now() - from;
  rmSync(file);
  return took;
}
