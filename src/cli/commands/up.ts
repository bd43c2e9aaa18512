import { fork } from "node:child_process";
import { mkdirSync, openSync } from "node:fs";
import { join, relative, resolve } from "node:path";
import { type Command, Option } from "commander";
import { messageOf } from "../../errors.ts";
import { lockHolder } from "../../io/durable.ts";
import { parseDuration } from "../../resources/values.ts";
import { leftUnread } from "../../up/catalogue.ts";
import { type Layout, layoutOf } from "../../up/layout.ts";
import { MeshUp } from "../../up/mesh.ts";
import type { UpOptions } from "../../up/prepare.ts";
import { readState } from "../../up/state.ts";
import { type App, exitOf, type Run } from "../app.ts";
import { BadArgument } from "../errors.ts";
import { EXIT } from "../exit.ts";

interface Options {
  catalogue?: string;
  dir: string;
  http?: string;
  store?: string;
  broker?: string;
  poll?: string;
  detach?: boolean;
  parent?: boolean;
}

export function define(command: Command, app: App, run: Run): void {
  command
    .option("--catalogue <dir|url>", "a folder, a bare repository or an http(s) URL (default: .)")
    .option("--dir <dir>", "where the mesh keeps everything", ".mesh")
    .option("--http <port>", "port of the controller's HTTP (default: a free one)")
    .option("--store <url>", "an existing Postgres instead of the embedded one")
    .option("--broker <url>", "an existing nats-server instead of an own one")
    .option("--poll <duration>", "how often a URL is asked for news (default: 30s)")
    .option("--detach", "return once it is up")
    .addOption(new Option("--parent").hideHelp())
    .addHelpText("after", "\nExample:\n  $ mesh up --catalogue examples-repo --detach")
    .action((options: Options) => run(() => up(app, options)));
}

async function up(app: App, options: Options): Promise<number> {
  const asked = upOptions(app, options);
  const layout = layoutOf(options.dir);
  const holder = lockHolder(layout.run);
  if (!options.parent) noteUnread(app, asked, layout, holder !== null);
  if (holder !== null) {
    const down = isUsual(options.dir) ? "mesh down" : `mesh down --dir ${options.dir}`;
    app.out.print(`the mesh in ${options.dir} is up already (pid ${holder}); \`${down}\` stops it`);
    return EXIT.done;
  }
  return options.detach ? detach(app, options) : stay(app, options, asked);
}

/** A folder holds one mesh. Who asks for another there is told, and gets the one that is there. */
function noteUnread(app: App, asked: UpOptions, layout: Layout, running: boolean): void {
  const state = readState(layout);
  const unread = leftUnread(asked.catalogue, state, running);
  if (unread === null) return;
  const made = state?.from ? `, made from ${state.from}` : "";
  app.out.note(
    `mesh: ${unread} is not read: ${asked.dir} holds the mesh of ${state?.catalogue}${made}; another mesh takes another --dir, or \`mesh down --purge\` first`,
  );
}

const isUsual = (dir: string) => resolve(dir) === resolve(".mesh");

function upOptions(app: App, options: Options): UpOptions {
  const http = options.http === undefined ? null : Number(options.http);
  if (http !== null && !(Number.isInteger(http) && http > 0 && http < 65_536)) {
    throw new BadArgument({ what: "--http", found: options.http ?? "", allowed: "a port from 1 to 65535" });
  }
  if (options.poll !== undefined && parseDuration(options.poll) === null) {
    throw new BadArgument({ what: "--poll", found: options.poll, allowed: 'a duration such as "30s"' });
  }
  return {
    dir: options.dir,
    catalogue: options.catalogue ?? app.config.catalogue,
    ref: app.config.ref,
    http,
    store: options.store ?? app.config.store,
    broker: options.broker ?? app.config.broker,
    poll: options.poll ?? null,
  };
}

/** Is the parent until a signal comes. */
async function stay(app: App, options: Options, asked: UpOptions): Promise<number> {
  const say = (text: string) => app.out.print(options.parent ? `${new Date().toISOString()} ${text}` : text);
  const mesh = new MeshUp(options.dir, { programs: app.programs, env: partEnvironment(app.env), say });
  const signalled = new Promise<string>((done) => {
    for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => done(signal));
  });
  const tell = (message: object) => {
    if (process.connected) process.send?.(message, () => process.disconnect());
  };
  try {
    const started = mesh.start(asked);
    const first = await Promise.race([started.then(() => null), signalled]);
    if (first !== null) await started.catch(() => {});
  } catch (error) {
    tell({ failed: messageOf(error), code: exitOf(error) });
    throw error;
  }
  tell({ ready: summary(mesh, options) });
  if (!options.parent) say(summary(mesh, options));
  await signalled;
  say("stopping");
  await mesh.stop({ workloads: true });
  return EXIT.done;
}

/** What the mesh's context says must not be overruled by what this shell happens to have set. */
function partEnvironment(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const { MESH_CONTEXT, MESH_STORE, MESH_BROKER, MESH_CATALOGUE, MESH_REF, MESH_HTTP, ...rest } = env;
  return rest;
}

async function detach(app: App, options: Options): Promise<number> {
  const layout = layoutOf(options.dir);
  mkdirSync(layout.logs, { recursive: true });
  const log = openSync(layout.logFile("up"), "a", 0o600);
  const args = process.argv.slice(2).filter((arg) => arg !== "--detach");
  const child = fork(join(app.programs, "mesh.js"), [...args, "--parent"], {
    detached: true,
    stdio: ["ignore", log, log, "ipc"],
  });
  const answer = await new Promise<{ ready?: string; failed?: string; code?: number }>((done) => {
    child.once("message", (message) => done(message as { ready?: string }));
    child.once("exit", (code) =>
      done({ failed: `the parent ended with ${code}; see ${layout.logFile("up")}` }),
    );
  });
  child.removeAllListeners();
  if (child.connected) child.disconnect();
  child.unref();
  if (answer.ready) {
    app.out.print(answer.ready);
    return EXIT.done;
  }
  app.out.note(`mesh: ${answer.failed}`);
  return answer.code ?? EXIT.failed;
}

function summary(mesh: MeshUp, options: Options): string {
  const { state, layout } = mesh;
  const usual = isUsual(options.dir);
  const flag = usual ? "" : ` --context ${relative(".", layout.context) || layout.context}`;
  const hosts = mesh.hosts.length;
  return [
    `the mesh in ${options.dir} is up: controller, ${hosts} ${hosts === 1 ? "host" : "hosts"}`,
    `  clone   git clone ${state.catalogue}`,
    `  push    git push, then: mesh plan latest --wait${flag}`,
    `  status  mesh status${flag}`,
    `  http    http://127.0.0.1:${state.httpPort}`,
    `  stop    mesh down${usual ? "" : ` --dir ${options.dir}`}`,
  ].join("\n");
}
