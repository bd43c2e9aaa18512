import { spawn } from "node:child_process";
import { closeSync, openSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { incarnation } from "../io/durable.ts";
import { PartFailed } from "./errors.ts";
import { findByArguments, type Part, waitGone } from "./keep.ts";
import type { Layout } from "./layout.ts";

/** A part that is one of our own programs. `stopWithin` in ms: then it is killed. */
export function programPart(options: {
  name: string;
  layout: Layout;
  args: string[];
  env: NodeJS.ProcessEnv;
  stopWithin: number;
  ready?: () => Promise<boolean>;
}): Part {
  const { name, layout, args, env } = options;
  return {
    name,
    find: async () => findByArguments([process.execPath, ...args]),
    start: async () => {
      const log = openSync(layout.logFile(name), "a", 0o600);
      // A session of its own: a terminal's Ctrl-C and the end of the parent do not reach it.
      const child = spawn(process.execPath, args, {
        detached: true,
        stdio: ["ignore", log, log],
        env,
        cwd: layout.dir,
      });
      closeSync(log);
      child.unref();
      const gone = new Promise<void>((done) => {
        child.once("exit", () => done());
        child.once("error", () => done());
      });
      if (child.pid === undefined) {
        throw new PartFailed({ part: name, why: "cannot be started", log: layout.logFile(name) });
      }
      return { pid: child.pid, gone };
    },
    stop: (pid) => stopProcess(pid, options.stopWithin),
  };
}

/** SIGTERM, and SIGKILL after `within` ms. Resolves when that incarnation is gone. */
export async function stopProcess(pid: number, within: number): Promise<void> {
  const life = incarnation(pid);
  if (life === null) return;
  const kill = (signal: NodeJS.Signals) => {
    try {
      process.kill(pid, signal);
    } catch {
      // It is gone already.
    }
  };
  kill("SIGTERM");
  const waiting = new AbortController();
  const gone = waitGone(pid, life, waiting.signal);
  await Promise.race([gone, delay(within, undefined, { ref: false })]);
  if (incarnation(pid) === life) kill("SIGKILL");
  await Promise.race([gone, delay(5_000, undefined, { ref: false })]);
  waiting.abort();
}
