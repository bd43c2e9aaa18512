import { execFileSync } from "node:child_process";
import { rmSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { TestProject } from "vitest/node";

/** Builds dist/ once per run, so that tests start the same programs that users start. */
export default function setup(project: TestProject): void {
  // vitest leaves its own folder behind when a run is interrupted.
  process.once("exit", () => rmSync(project.tmpDir, { recursive: true, force: true }));
  const root = fileURLToPath(new URL("../..", import.meta.url));
  execFileSync(process.execPath, ["scripts/build.mjs"], { cwd: root, stdio: "inherit" });
}
