import { readFileSync } from "node:fs";
import { arch } from "node:os";
import { Declaration } from "../declaration/schema.ts";
import { meshError } from "../errors.ts";
import { faultAt } from "../io/faults.ts";
import type { HostEvent } from "../report/schema.ts";
import { VERSION } from "../version.ts";
import type { HostEnvironment } from "./config.ts";
import { decide, differencesOf } from "./decide.ts";
import { type Machine, openMachine } from "./machine.ts";
import { observe } from "./observe.ts";
import { placeAt } from "./place.ts";
import { writeStatus } from "./status.ts";

export class DeclarationUnreadable extends meshError(
  "declaration-unreadable",
  "stalled",
  (f: { file: string; why: string }) =>
    `${f.file}: ${f.why}; expected what \`mesh node NAME --declaration\` prints`,
) {}

export interface ApplyOptions {
  file: string;
  root: string;
  noop: boolean;
  json: boolean;
}

export interface Terminal {
  out(line: string): void;
  err(line: string): void;
}

function readDeclaration(file: string): Declaration {
  let value: unknown;
  try {
    value = JSON.parse(readFileSync(file === "-" ? 0 : file, "utf8"));
  } catch (cause) {
    const code = (cause as NodeJS.ErrnoException).code;
    throw new DeclarationUnreadable({ file, why: code ?? "is not JSON" }, { cause });
  }
  const parsed = Declaration.safeParse(value);
  if (parsed.success) return parsed.data;
  const issue = parsed.error.issues[0];
  const at = issue?.path.join(".") ?? "";
  throw new DeclarationUnreadable({
    file,
    why: `${at ? `${at}: ` : ""}${issue?.message ?? "is no declaration"}`,
  });
}

/** Applies a declaration once, or with `noop` says what it would change. Returns the exit code. */
export async function applyFile(
  options: ApplyOptions,
  environment: HostEnvironment,
  terminal: Terminal,
): Promise<number> {
  const declaration = readDeclaration(options.file);
  const place = placeAt(options.root, !options.noop);
  const events: HostEvent[] = [];
  const listeners = {
    onEvent: (event: HostEvent) => void events.push(event),
    onAccount: () => undefined,
    onError: () => undefined,
  };
  const machine = await openMachine(place, environment, faultAt(environment.fault), listeners, options.noop);
  try {
    if (options.noop || declaration.body.mode === "observe")
      return await show(machine, declaration, options, terminal);
    return await applyOnce(machine, declaration, options, terminal, events);
  } finally {
    await machine.close();
  }
}

async function show(
  { loaded, assembly, supervisor }: Machine,
  { body }: Declaration,
  options: ApplyOptions,
  terminal: Terminal,
): Promise<number> {
  const seen = await observe(body, loaded.state, assembly.drivers, supervisor);
  const differences = differencesOf(decide(body, loaded.state, seen, Date.now()));
  if (options.json) terminal.out(JSON.stringify({ node: body.node, differences }));
  else {
    for (const { id, change, detail } of differences) terminal.out(`${change.padEnd(8)}${id}: ${detail}`);
    terminal.out(
      differences.length === 0 ? "nothing to do" : `${differences.length} to change; nothing was changed`,
    );
  }
  return differences.some(({ change }) => change === "error") ? 1 : 0;
}

/** A process that an earlier apply started and that did not hold. */
const DOWN: ReadonlySet<string | undefined> = new Set(["backing-off", "rolled-back", "halted"]);

async function applyOnce(
  machine: Machine,
  declaration: Declaration,
  options: ApplyOptions,
  terminal: Terminal,
  events: HostEvent[],
): Promise<number> {
  const pass = await machine.loop.once(declaration);
  const account = machine.loop.account();
  writeStatus(machine.place, {
    format: 1,
    node: declaration.body.node,
    at: new Date().toISOString(),
    version: VERSION,
    arch: arch(),
    ...account,
    handovers: [],
    events,
    limits: machine.supervisor.limits(),
  });
  const failed = account.resources.filter(
    ({ state, process }) => state === "failed" || state === "waiting" || DOWN.has(process?.state),
  );
  if (options.json)
    terminal.out(JSON.stringify({ node: declaration.body.node, changed: pass.changed, ...account, events }));
  else {
    for (const { kind, resource, detail } of events)
      if (kind !== "failed") terminal.out(`${kind.padEnd(8)} ${resource ?? "host"}: ${detail}`);
    for (const { id, state, error } of account.resources)
      if (state === "skipped") terminal.err(`skipped  ${id}: ${error}`);
    for (const { id, error, process } of failed)
      terminal.err(`failed   ${id}: ${error ?? `is ${process?.state}`}`);
    terminal.out(pass.changed === 0 && failed.length === 0 ? "nothing to do" : `${pass.changed} changed`);
  }
  return failed.length === 0 && pass.finished ? 0 : 1;
}
