import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { type Link, linkTo } from "../../src/cli/link.ts";
import { generateSigningKey } from "../../src/declaration/sign.ts";
import { startTestNats, type TestNats } from "../../test/support/nats.ts";
import { type OwnPostgres, ownPostgres } from "../../test/support/own-postgres.ts";
import { cleanEnvironment, distDir, profileDir } from "../config.ts";
import { percentile } from "./row.ts";

/** A real controller with its broker and store, as processes; hosts are somebody else's matter. */
export interface Centre {
  nats: TestNats;
  publicKey: string;
  link: Link;
  start(catalogue: string): ChildProcess;
  /** The last lines the controller wrote. */
  log(): string;
  stop(): Promise<void>;
}

export async function aCentre(): Promise<Centre> {
  const dir = mkdtempSync(join(tmpdir(), "mesh-bench-"));
  const postgres: OwnPostgres = await ownPostgres();
  const nats = await startTestNats();
  const key = generateSigningKey();
  const keyFile = join(dir, "controller.pem");
  writeFileSync(keyFile, key.privateKey, { mode: 0o600 });
  const link = await linkTo(nats.url, "bench");
  let child: ChildProcess | null = null;
  let log = "";
  return {
    nats,
    publicKey: key.publicKey,
    link,
    log: () => log.slice(-4_000),
    start(catalogue) {
      const profile = profileDir ? ["--cpu-prof", `--cpu-prof-dir=${profileDir}`] : [];
      child = spawn(process.execPath, [...profile, join(distDir, "mesh-controller.js"), "serve"], {
        cwd: dir,
        env: {
          ...cleanEnvironment(),
          MESH_STORE: postgres.url,
          MESH_BROKER: nats.url,
          MESH_CATALOGUE: catalogue,
          MESH_KEY_FILE: keyFile,
        },
        stdio: ["ignore", "pipe", "pipe"],
      });
      const keep = (chunk: Buffer) => {
        log = (log + chunk).slice(-100_000);
      };
      child.stdout!.on("data", keep);
      child.stderr!.on("data", keep);
      return child;
    },
    async stop() {
      await link.close();
      if (child && child.exitCode === null) {
        child.kill(profileDir ? "SIGTERM" : "SIGKILL");
        await new Promise((resolve) => child!.once("exit", resolve));
      }
      await nats.stop();
      await postgres.stop();
      rmSync(dir, { recursive: true, force: true });
    },
  };
}

export interface PlanLine {
  id: number;
  commit: string;
  state: string;
  reason: string | null;
}

/** Until the newest plan is of `commit` and done. Throws with what the controller said when it is not in time. */
export async function planDone(
  centre: { link: Link; log?(): string },
  commit: string,
  options: { within: number; every?: number },
): Promise<void> {
  const until = performance.now() + options.within;
  let last: unknown = null;
  while (performance.now() < until) {
    const { plans } = await centre.link.controller<{ plans: PlanLine[] }>("plans", {}).catch((error) => {
      last = String(error);
      return { plans: [] };
    });
    if (plans[0]) last = plans[0];
    if (plans[0]?.commit === commit && plans[0].state === "done") return;
    await delay(options.every ?? 20);
  }
  throw new Error(`no done plan of ${commit}: ${JSON.stringify(last)}\n${centre.log?.() ?? ""}`);
}

/** Asks a verb again and again, `every` ms, until stopped; returns the 99th percentile of the answers' times, ms. */
export function askMeanwhile(link: Link, verb: string, body: object, every: number) {
  const times: number[] = [];
  const errors: unknown[] = [];
  let going = true;
  const run = async () => {
    while (going) {
      const from = performance.now();
      await link.controller(verb, body).then(
        () => times.push(performance.now() - from),
        (error) => errors.push(error),
      );
      await delay(every);
    }
  };
  const running = run();
  return async () => {
    going = false;
    await running;
    return {
      p99: percentile(times, 99),
      median: percentile(times, 50),
      calls: times.length,
      failed: errors.length,
    };
  };
}
