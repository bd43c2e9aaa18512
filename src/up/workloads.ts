import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { messageOf } from "../errors.ts";
import type { Layout } from "./layout.ts";

const STOPS_WITHIN = 60_000;

/** Stops what the hosts of this mesh supervise, after the hosts themselves have ended. False: some of it may run on. */
export async function stopWorkloads(
  layout: Layout,
  around: { programs: string; env: NodeJS.ProcessEnv; say: (text: string) => void },
): Promise<boolean> {
  let all = true;
  const nodes = await readdir(layout.nodes).catch(() => [] as string[]);
  const there = nodes.filter((node) => existsSync(join(layout.nodeRoot(node), "var/lib/mesh-host")));
  // A few at a time: each is a program of its own.
  for (let i = 0; i < there.length; i += 4) {
    await Promise.all(
      there.slice(i, i + 4).map((node) =>
        stopOf(join(around.programs, "mesh-host.js"), layout.nodeRoot(node), around.env).catch(
          (error: unknown) => {
            all = false;
            around.say(`workloads of ${node}: ${messageOf(error)}`);
          },
        ),
      ),
    );
  }
  return all;
}

function stopOf(program: string, root: string, env: NodeJS.ProcessEnv): Promise<void> {
  return new Promise((resolve, reject) => {
    const args = [program, "stop-workloads", "--root", root];
    execFile(process.execPath, args, { env, timeout: STOPS_WITHIN }, (error, _stdout, stderr) => {
      if (error) reject(new Error(stderr.trim().split("\n").at(-1) || error.message));
      else resolve();
    });
  });
}
