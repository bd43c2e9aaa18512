import { execFile, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { accessSync, constants, mkdirSync, openSync, writeFileSync } from "node:fs";
import { connect, createServer } from "node:net";
import { delimiter, join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { promisify } from "node:util";
import { meshError, messageOf } from "../errors.ts";

const LEAST = [2, 9] as const;
const USUAL_FOLDERS = ["/usr/sbin", "/usr/local/sbin", "/usr/local/bin", "/usr/bin", "/opt/homebrew/bin"];

export class NatsServerMissing extends meshError(
  "nats-server-missing",
  "wait",
  (f: { tried: string[] }) =>
    `nats-server: not found in ${f.tried.join(", ")}; version 2.9 or newer is needed: install the package nats-server, or name a running broker with --broker URL`,
) {}

export class NatsServerTooOld extends meshError(
  "nats-server-too-old",
  "wait",
  (f: { file: string; found: string }) =>
    `${f.file}: is ${f.found}; version 2.9 or newer is needed: install a newer nats-server, or name a running broker with --broker URL`,
) {}

export class NatsServerFailed extends meshError(
  "nats-server-failed",
  "retry",
  (f: { address: string; why: string; log: string }) =>
    `nats-server on ${f.address}: ${f.why}; its own words are in ${f.log}`,
) {}

/**
 * Finds nats-server >= 2.9.
 * @param path the PATH to search; the usual system folders are searched too, since PATH of an ordinary user often lacks /usr/sbin
 */
export async function findNatsServer(path = ""): Promise<{ file: string; version: string }> {
  const folders = [...new Set([...path.split(delimiter).filter(Boolean), ...USUAL_FOLDERS])];
  let tooOld: NatsServerTooOld | null = null;
  for (const folder of folders) {
    const file = join(folder, "nats-server");
    try {
      accessSync(file, constants.X_OK);
    } catch {
      continue;
    }
    const version = await versionOf(file);
    if (isNewEnough(version)) return { file, version };
    tooOld ??= new NatsServerTooOld({ file, found: version });
  }
  throw tooOld ?? new NatsServerMissing({ tried: folders });
}

async function versionOf(file: string): Promise<string> {
  try {
    const { stdout } = await promisify(execFile)(file, ["--version"], { timeout: 10_000, env: {} });
    return /v(\d+\.\d+\.\d+\S*)/.exec(stdout)?.[1] ?? "of unknown version";
  } catch (error) {
    return `not startable (${messageOf(error)})`;
  }
}

function isNewEnough(version: string): boolean {
  const [major = 0, minor = 0] = version.split(".").map((part) => Number.parseInt(part, 10) || 0);
  return major > LEAST[0] || (major === LEAST[0] && minor >= LEAST[1]);
}

export interface NatsConfig {
  port: number;
  /** JetStream keeps its streams here. */
  storeDir: string;
  user: string;
  pass: string;
  name?: string;
  /** Bytes; the server's own default is 1 MiB. */
  maxPayload?: number;
}

/** The text of a server configuration: loopback only, JetStream on, one credential. */
export function natsConfig(config: NatsConfig): string {
  const quoted = (text: string) => JSON.stringify(text);
  return [
    `server_name: ${quoted(config.name ?? "mesh")}`,
    `listen: "127.0.0.1:${config.port}"`,
    `jetstream { store_dir: ${quoted(config.storeDir)} }`,
    `authorization { user: ${quoted(config.user)}, password: ${quoted(config.pass)} }`,
    ...(config.maxPayload ? [`max_payload: ${config.maxPayload}`] : []),
    "",
  ].join("\n");
}

export function natsUrl(config: { port: number; user: string; pass: string }): string {
  return `nats://${encodeURIComponent(config.user)}:${encodeURIComponent(config.pass)}@127.0.0.1:${config.port}`;
}

/** A TCP port nobody listens on at this moment. */
export async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(0, "127.0.0.1", resolve);
  });
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  return typeof address === "object" && address ? address.port : 0;
}

/** Resolves once the server on `port` greets, says that JetStream is on, and is the one of that name: another may have been faster to the port. */
export async function natsReady(
  port: number,
  options: { within?: number; alive?: () => boolean; name?: string } = {},
): Promise<boolean> {
  const until = Date.now() + (options.within ?? 15_000);
  while (Date.now() < until) {
    if (options.alive && !options.alive()) return false;
    if (await greets(port, options.name)) return true;
    await delay(25);
  }
  return false;
}

function greets(port: number, name: string | undefined): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ port, host: "127.0.0.1" });
    const end = (answer: boolean) => {
      socket.destroy();
      resolve(answer);
    };
    let text = "";
    socket.setTimeout(1_000, () => end(false));
    socket.once("error", () => end(false));
    socket.once("close", () => end(false));
    socket.on("data", (bytes) => {
      text += bytes.toString("utf8");
      if (text.includes("\n")) end(isGreeting(text, name));
    });
  });
}

function isGreeting(text: string, name: string | undefined): boolean {
  try {
    const info = JSON.parse(text.replace(/^INFO /, "")) as { jetstream?: boolean; server_name?: string };
    return info.jetstream === true && (name === undefined || info.server_name === name);
  } catch {
    return false;
  }
}

export interface RunningNats {
  pid: number;
  port: number;
  /** With the credential in it: never to a log. */
  url: string;
  /** Asks it to end, and kills it after 10 s. Resolves when it is gone. */
  stop(): Promise<void>;
}

/**
 * Starts nats-server as a program of its own that outlives this one.
 * @param options.dir holds nats.conf (0600) and the store folder `nats`
 * @param options.log where its output goes, default `<dir>/nats.log`
 */
export async function startNats(options: {
  dir: string;
  binary: string;
  port?: number;
  user: string;
  pass: string;
  name?: string;
  log?: string;
}): Promise<RunningNats> {
  const port = options.port || (await freePort());
  const name = options.name ?? `mesh-${randomBytes(4).toString("hex")}`;
  const log = options.log ?? join(options.dir, "nats.log");
  const storeDir = join(options.dir, "nats");
  const config = join(options.dir, "nats.conf");
  mkdirSync(storeDir, { recursive: true, mode: 0o700 });
  writeFileSync(config, natsConfig({ ...options, name, port, storeDir }), { mode: 0o600 });
  const out = openSync(log, "a", 0o600);
  const child = spawn(options.binary, ["-c", config], {
    detached: true,
    stdio: ["ignore", out, out],
    env: {},
  });
  child.unref();
  let ended: string | null = null;
  child.once("error", (error) => {
    ended = messageOf(error);
  });
  child.once("exit", (code, signal) => {
    ended = `it ended with ${signal ?? `exit code ${code}`}`;
  });
  const ready = await natsReady(port, { name, alive: () => ended === null });
  if (!ready || child.pid === undefined) {
    if (child.pid !== undefined && ended === null) child.kill("SIGKILL");
    const why = ended ?? "does not answer with JetStream within 15 s";
    throw new NatsServerFailed({ address: `127.0.0.1:${port}`, why, log });
  }
  const pid = child.pid;
  return { pid, port, url: natsUrl({ ...options, port }), stop: () => stopNats(pid) };
}

/** Ends a nats-server by pid: SIGTERM, then SIGKILL after 10 s. */
export async function stopNats(pid: number): Promise<void> {
  if (!signal(pid, "SIGTERM")) return;
  const until = Date.now() + 10_000;
  while (signal(pid, 0)) {
    if (Date.now() > until) signal(pid, "SIGKILL");
    await delay(20);
  }
}

function signal(pid: number, name: NodeJS.Signals | 0): boolean {
  try {
    process.kill(pid, name);
    return true;
  } catch {
    return false;
  }
}
