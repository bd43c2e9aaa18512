import { readFileSync } from "node:fs";
import { isAbsolute, join, resolve } from "node:path";
import { type Context, findContext, readContext } from "../context.ts";
import { meshError, messageOf } from "../errors.ts";
import { parseDuration } from "../resources/values.ts";

/** Everything the controller is told from outside, complete and checked. Times in ms. */
export interface ControllerConfig {
  mesh: string;
  store: string;
  broker: string;
  /** A folder that is a Git repository (bare or not), or an http(s) URL. */
  catalogue: string;
  ref: string;
  /** Where a remote catalogue is cloned to. */
  cloneDir: string;
  poll: number;
  token: string | null;
  http: { host: string; port: number };
  /** The private signing key, PEM. */
  keyFile: string;
  replicas: number;
  log: string;
  /** Name of a point at which the program kills itself; for tests of crashes. */
  fault: string | null;
}

export class ConfigInvalid extends meshError(
  "config-invalid",
  "stalled",
  (f: { problems: string[] }) => `the controller cannot start: ${f.problems.join("; ")}`,
) {}

export interface ControllerFlags {
  context?: string | undefined;
  http?: string | undefined;
}

const DEFAULT_HTTP_HOST = "127.0.0.1";

/**
 * Reads flags, environment and context, the first that says something wins, and names every bad value at once.
 * `MESH_STORE_FILE`, `MESH_BROKER_FILE` and `MESH_CATALOGUE_TOKEN_FILE` name files that hold the value.
 */
export function readConfig(
  flags: ControllerFlags,
  env: NodeJS.ProcessEnv = process.env,
  cwd = process.cwd(),
): ControllerConfig {
  const problems: string[] = [];
  const attempt = <T>(what: () => T, fallback: T): T => {
    try {
      return what();
    } catch (error) {
      problems.push(messageOf(error));
      return fallback;
    }
  };
  const fromFile = (name: string): string | null => {
    const file = env[name];
    if (!file) return null;
    return attempt(() => readFileSync(file, "utf8").trim(), null);
  };
  const found = findContext({ flag: flags.context, env: env.MESH_CONTEXT, cwd });
  const context: Context | null = found.file ? attempt(() => readContext(found.file as string), null) : null;
  const dir = context?.dir ?? (found.file ? resolve(found.file, "..") : cwd);
  const required = (name: string, value: string | null | undefined): string => {
    if (!value) problems.push(`${name} is not set and the context has no such value`);
    return value ?? "";
  };
  const inDir = (path: string) => (isAbsolute(path) || /^[a-z]+:\/\//.test(path) ? path : join(dir, path));

  const config: ControllerConfig = {
    mesh: context?.mesh ?? "mesh",
    store: required("MESH_STORE", fromFile("MESH_STORE_FILE") ?? env.MESH_STORE ?? context?.store),
    broker: required("MESH_BROKER", fromFile("MESH_BROKER_FILE") ?? env.MESH_BROKER ?? context?.broker),
    catalogue: inDir(required("MESH_CATALOGUE", env.MESH_CATALOGUE ?? context?.catalogue)),
    ref: env.MESH_REF ?? context?.ref ?? "main",
    cloneDir: join(dir, "catalogue-clone"),
    poll: duration("MESH_POLL", env.MESH_POLL ?? "30s", problems),
    token: fromFile("MESH_CATALOGUE_TOKEN_FILE"),
    http: httpAddress(flags.http ?? env.MESH_HTTP, context?.http ?? null, problems),
    keyFile: inDir(required("MESH_KEY_FILE", env.MESH_KEY_FILE ?? context?.keyFile)),
    replicas: wholeNumber("MESH_REPLICAS", env.MESH_REPLICAS ?? "1", 1, 5, problems),
    log: oneOf(
      "MESH_LOG",
      env.MESH_LOG ?? "info",
      ["trace", "debug", "info", "warn", "error", "fatal"],
      problems,
    ),
    fault: env.MESH_FAULT ?? null,
  };
  if (problems.length > 0) throw new ConfigInvalid({ problems });
  return config;
}

function duration(name: string, text: string, problems: string[]): number {
  const ms = parseDuration(text);
  if (ms === null) problems.push(`${name} is "${text}"; allowed is a duration such as "30s"`);
  return ms ?? 0;
}

function wholeNumber(name: string, text: string, from: number, to: number, problems: string[]): number {
  const value = Number(text);
  if (Number.isInteger(value) && value >= from && value <= to) return value;
  problems.push(`${name} is "${text}"; allowed is a whole number from ${from} to ${to}`);
  return from;
}

function oneOf(name: string, value: string, allowed: string[], problems: string[]): string {
  if (!allowed.includes(value)) problems.push(`${name} is "${value}"; allowed is ${allowed.join(", ")}`);
  return value;
}

/** `--http PORT` or HOST:PORT; without it the context's own address when free, else any free port (0). */
function httpAddress(
  flag: string | undefined,
  context: string | null,
  problems: string[],
): { host: string; port: number } {
  if (flag === undefined) {
    const url = context ? new URL(context) : null;
    return { host: url?.hostname ?? DEFAULT_HTTP_HOST, port: Number(url?.port ?? 0) };
  }
  const match = /^(?:(.+):)?(\d{1,5})$/.exec(flag);
  const port = Number(match?.[2]);
  if (!match || port > 65535) {
    problems.push(`--http (MESH_HTTP) is "${flag}"; allowed is PORT or HOST:PORT`);
    return { host: DEFAULT_HTTP_HOST, port: 0 };
  }
  return { host: match[1] ?? DEFAULT_HTTP_HOST, port };
}
