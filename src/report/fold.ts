import { createHash } from "node:crypto";
import type { HostEvent, Report } from "./schema.ts";

/** An event with what makes it one and the same however often its report arrives. `place` counts within the report, from 0. */
export interface FoldedEvent {
  node: string;
  hostStart: string;
  number: number;
  place: number;
  event: HostEvent;
}

/** A batch, folded: at most one report per node, and the events of all. */
export interface Fold {
  newest: Report[];
  events: FoldedEvent[];
}

/** Order of two reports of one node: by start of the host (they order by text), then by number. */
export function isNewer(
  a: Pick<Report, "hostStart" | "number">,
  b: Pick<Report, "hostStart" | "number">,
): boolean {
  return a.hostStart === b.hostStart ? a.number > b.number : a.hostStart > b.hostStart;
}

/**
 * The newest report per node wins (each holds the whole state); events of every report count once. Pure; the order and the
 * repetition of reports do not matter. Sorted by node, and events by (node, start, number, place).
 */
export function fold(reports: Iterable<Report>): Fold {
  const newest = new Map<string, Report>();
  const events = new Map<string, FoldedEvent>();
  for (const report of reports) {
    const known = newest.get(report.node);
    if (!known || isNewer(report, known)) newest.set(report.node, report);
    const { node, hostStart, number } = report;
    report.events.forEach((event, place) => {
      events.set(`${node}\n${hostStart}\n${number}\n${place}`, { node, hostStart, number, place, event });
    });
  }
  return {
    newest: [...newest.values()].sort((a, b) => compare(a.node, b.node)),
    events: [...events.values()].sort(
      (a, b) =>
        compare(a.node, b.node) ||
        compare(a.hostStart, b.hostStart) ||
        a.number - b.number ||
        a.place - b.place,
    ),
  };
}

/** Equal for two reports between which nothing moved that a plan looks at. */
export function progressDigest(report: Report): string {
  const { sequence, revision, outcome, error } = report;
  const resources = report.resources.map(({ id, state, error, process }) => [
    id,
    state,
    error,
    process?.state,
    process?.pid,
  ]);
  const handovers = report.handovers.map(({ resource, state, passed }) => [resource, state, passed]);
  return createHash("sha1")
    .update(JSON.stringify([sequence, revision, outcome, error, resources, handovers]))
    .digest("base64");
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
