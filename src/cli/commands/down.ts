import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type { Command } from "commander";
import { lockHolder } from "../../io/durable.ts";
import { NotAMeshFolder, WorkloadsLeft } from "../../up/errors.ts";
import { layoutOf } from "../../up/layout.ts";
import { purge, stopLeftovers } from "../../up/mesh.ts";
import type { App, Run } from "../app.ts";
import { EXIT } from "../exit.ts";

const PARENT_STOPS_WITHIN = 180_000;

export function define(command: Command, app: App, run: Run): void {
  command
    .option("--dir <dir>", "the mesh's folder (default: .mesh, here or in a folder above)")
    .option("--purge", "remove the folder too, catalogue.git and all data with it")
    .addHelpText("after", "\nExample:\n  $ mesh down --purge")
    .action((options: { dir?: string; purge?: boolean }) =>
      run(() => down(app, { ...options, dir: options.dir ?? enclosing() })),
    );
}

/** The nearest .mesh that holds a mesh, from here upwards, as the other commands find their context. */
function enclosing(): string {
  for (let up = "."; ; up = join(up, "..")) {
    const dir = join(up, ".mesh");
    if (existsSync(layoutOf(dir).state)) return dir;
    if (resolve(up) === resolve(up, "..")) return ".mesh";
  }
}

async function down(app: App, options: { dir: string; purge?: boolean }): Promise<number> {
  const layout = layoutOf(options.dir);
  if (!existsSync(layout.state)) throw new NotAMeshFolder({ dir: options.dir });
  const parent = lockHolder(layout.run);
  if (parent !== null) await endParent(layout.run, parent);
  // A parent that ended by itself has stopped everything; one that was killed, or killed long ago, has not.
  const leftBehind = parent === null || existsSync(layout.pidFile("up"));
  if (leftBehind) {
    const say = (text: string) => app.out.note(text);
    const stopped = await stopLeftovers(options.dir, { programs: app.programs, env: app.env, say });
    if (!stopped) throw new WorkloadsLeft({ dir: options.dir });
  }
  if (options.purge) await purge(options.dir);
  app.out.print(`the mesh in ${options.dir} is ${options.purge ? "removed" : "down"}`);
  return EXIT.done;
}

/** The parent stops its parts in order. One that does not end is killed, and its parts are stopped from here. */
async function endParent(runDir: string, pid: number): Promise<void> {
  const until = Date.now() + PARENT_STOPS_WITHIN;
  signal(pid, "SIGTERM");
  while (lockHolder(runDir) === pid) {
    if (Date.now() > until) signal(pid, "SIGKILL");
    await delay(50);
  }
}

function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}
