import { existsSync } from "node:fs";
import { mkdir, readFile } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import type { Context } from "../context.ts";
import { createSigner, generateSigningKey } from "../declaration/sign.ts";
import { writeDurably } from "../io/durable.ts";
import { placeCatalogue } from "./catalogue.ts";
import { runningPid } from "./keep.ts";
import type { Layout } from "./layout.ts";
import { freePort } from "./nats.ts";
import { databasePlace, portIsFree } from "./services.ts";
import { newPassword, readState, type UpState } from "./state.ts";

/** What a person asked of `mesh up`. Null: not said; then what the folder remembers holds, else the default. */
export interface UpOptions {
  dir: string;
  catalogue: string | null;
  ref: string;
  http: number | null;
  store: string | null;
  broker: string | null;
  poll: string | null;
}

/** What DIR/up.json is to say. Nothing runs yet, and nothing is remembered yet. */
export async function prepareState(layout: Layout, options: UpOptions): Promise<UpState> {
  const before = readState(layout);
  await mkdir(layout.logs, { recursive: true });
  const database = options.store ? null : (before?.database ?? (await databasePlace(layout)));
  const { place: catalogue, from } = await catalogueOf(layout, options, before);
  const state: UpState = {
    store: options.store ?? before?.store ?? null,
    broker: options.broker ?? before?.broker ?? null,
    catalogue,
    from,
    ref: before?.ref ?? options.ref,
    poll: options.poll ?? before?.poll ?? null,
    database,
    storePort: await portFor(layout, "postgres", before?.storePort),
    brokerPort: await portFor(layout, "nats", before?.brokerPort),
    brokerPassword: before?.brokerPassword ?? newPassword(),
    httpPort: options.http ?? (await portFor(layout, "controller", before?.httpPort)),
    hosts: before?.hosts ?? [],
  };
  return state;
}

async function catalogueOf(
  layout: Layout,
  options: UpOptions,
  before: UpState | null,
): Promise<Pick<UpState, "from"> & { place: string }> {
  const from = before?.from ?? null;
  if (before && options.catalogue === null) return { place: before.catalogue, from };
  const given = options.catalogue ?? ".";
  const { place, kind } = await placeCatalogue(given, before?.ref ?? options.ref, layout);
  return { place, from: kind === "made" ? resolve(given) : from };
}

/** The port it had, unless somebody else took it while the part was down. */
async function portFor(layout: Layout, part: string, before: number | undefined): Promise<number> {
  if (before && (runningPid(layout, part) !== null || (await portIsFree(before)))) return before;
  return freePort();
}

/** The controller's signing key, made once. @returns the public one, which hosts pin */
export async function prepareKey(layout: Layout): Promise<string> {
  if (!existsSync(layout.key)) {
    await mkdir(dirname(layout.key), { recursive: true, mode: 0o700 });
    writeDurably(layout.key, generateSigningKey().privateKey);
  }
  return createSigner(layout.key).publicKey;
}

/** Writes DIR/context.json (0600). @returns whether it says something else than before */
export async function writeContext(layout: Layout, context: Context): Promise<boolean> {
  const text = `${JSON.stringify(context, null, 2)}\n`;
  const before = await readFile(layout.context, "utf8").catch(() => null);
  if (before === text) return false;
  writeDurably(layout.context, text);
  return before !== null;
}
