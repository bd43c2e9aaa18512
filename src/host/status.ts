import { join } from "node:path";
import { meshError } from "../errors.ts";
import { lockHolder, readIfThere, writeDurably } from "../io/durable.ts";
import { Report } from "../report/schema.ts";
import type { HostPlace } from "../resources/driver.ts";

export class NoHostHere extends meshError(
  "no-host-here",
  "stalled",
  (f: { dir: string }) =>
    `no host has worked in ${f.dir}; name its root with --root DIR, or start one with \`mesh-host run\``,
) {}

/** The newest account of a host, as it lies on disk; `pid` is null when no host runs there. */
export const StatusDocument = Report.omit({ hostStart: true, number: true, droppedReports: true });
type StatusDocument = ReturnType<typeof StatusDocument.parse>;

const fileOf = (dir: string) => join(dir, "status.json");

export function writeStatus(place: HostPlace, document: StatusDocument): void {
  writeDurably(fileOf(place.stateDir), JSON.stringify(document));
}

function readStatus(place: HostPlace): StatusDocument {
  const text = readIfThere(fileOf(place.stateDir));
  if (text === null) throw new NoHostHere({ dir: place.stateDir });
  try {
    return StatusDocument.parse(JSON.parse(text));
  } catch (cause) {
    throw new NoHostHere({ dir: place.stateDir }, { cause });
  }
}

/** Prints what the host here last said of itself. Returns the exit code. */
export function showStatus(place: HostPlace, json: boolean, out: (line: string) => void): number {
  const status = readStatus(place);
  const pid = lockHolder(place.stateDir);
  if (json) {
    out(JSON.stringify({ pid, ...status }));
    return 0;
  }
  out(`node      ${status.node}`);
  out(`host      ${pid === null ? "not running" : `running, pid ${pid}`}, version ${status.version}`);
  out(`outcome   ${status.outcome}${status.error ? `: ${status.error}` : ""}`);
  out(
    `declared  ${status.revision?.slice(0, 12) ?? "nothing"} (sequence ${status.sequence}), seen ${status.at}`,
  );
  const width = Math.max(0, ...status.resources.map(({ id }) => id.length));
  for (const { id, type, state, error, note, process } of status.resources) {
    const run = process ? ` ${process.state}${process.pid ? ` ${process.pid}` : ""}` : "";
    const why = error ?? note;
    out(`  ${id.padEnd(width)}  ${type.padEnd(9)}  ${state}${run}${why ? `  ${why}` : ""}`);
  }
  for (const { id, change, detail } of status.differences) out(`  would ${change} ${id}: ${detail}`);
  return 0;
}
