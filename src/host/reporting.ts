import type { Clock } from "../io/clock.ts";
import { iso } from "../io/clock.ts";
import type { HostEvent } from "../report/schema.ts";
import type { ReportBody } from "../report/send.ts";
import type { Account } from "./account.ts";

export interface ReportingParts {
  node: string;
  version: string;
  arch: string;
  clock: Clock;
  account(): Account;
  limits(): string[];
  /** Takes a report for sending and for `mesh-host status`. */
  put(report: ReportBody): void;
  signal: AbortSignal;
}

export interface Reporting {
  event(event: HostEvent): void;
  /** `now`: this turn. Otherwise with others, within ten seconds. */
  changed(now: boolean): void;
  /** A full report at once, whatever changed. */
  full(): void;
}

const COALESCE = 10_000;
const FULL_EVERY = 300_000;
const MOST_EVENTS = 500;

/** Decides when a report is made. Each holds the whole state and the events since the one before. */
export function createReporting(parts: ReportingParts): Reporting {
  const { clock, signal } = parts;
  let events: HostEvent[] = [];
  let dropped = 0;
  let soon = false;
  let queued = false;

  function make(): void {
    queued = false;
    if (signal.aborted) return;
    if (dropped > 0)
      events.push({
        at: iso(clock.now()),
        kind: "note",
        resource: null,
        detail: `${dropped} earlier events left out`,
      });
    parts.put({
      format: 1,
      node: parts.node,
      at: iso(clock.now()),
      version: parts.version,
      arch: parts.arch,
      ...parts.account(),
      handovers: [],
      events,
      limits: parts.limits(),
    });
    events = [];
    dropped = 0;
  }

  /** Several edges of one turn make one report. */
  function now(): void {
    if (queued) return;
    queued = true;
    setImmediate(make);
  }

  async function later(): Promise<void> {
    if (soon) return;
    soon = true;
    await clock.sleep(COALESCE, signal).catch(() => undefined);
    soon = false;
    now();
  }

  void (async () => {
    while (!signal.aborted) {
      await clock.sleep(FULL_EVERY, signal).catch(() => undefined);
      now();
    }
  })();

  return {
    event(event) {
      events.push(event);
      if (events.length <= MOST_EVENTS) return;
      events.shift();
      dropped += 1;
    },
    changed: (urgent) => (urgent ? now() : void later()),
    full: now,
  };
}
