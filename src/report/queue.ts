import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type HostEvent, Report } from "./schema.ts";

export interface Queued {
  file: string;
  report: Report;
  bytes: number;
  /** It may be with the broker already: it is sent as it is, under the same id, and never merged. */
  attempted: boolean;
  /** On disk; false while the disk refused it, then it is held in memory only. */
  stored: boolean;
}

export interface QueueLimits {
  count: number;
  bytes: number;
  events: number;
}

/**
 * Reports that the broker has not taken yet, one file each, in the order they were made. Over its limits the oldest one goes:
 * each report holds the whole state, so only its events must live on, and they move into the next one.
 */
export class ReportQueue {
  readonly #dir: string;
  readonly #limits: QueueLimits;
  readonly #entries: Queued[] = [];
  #made = 0;
  /** Since this start. */
  dropped = 0;
  /** Disk errors are told here; the queue goes on in memory. */
  onTrouble: (error: unknown) => void = () => {};

  constructor(dir: string, limits: QueueLimits) {
    this.#dir = dir;
    this.#limits = limits;
    this.#load();
  }

  get length(): number {
    return this.#entries.length;
  }

  first(): Queued | null {
    return this.#entries[0] ?? null;
  }

  add(report: Report): void {
    const file = join(this.#dir, `${String(++this.#made).padStart(12, "0")}.json`);
    const entry: Queued = { file, report, bytes: 0, attempted: false, stored: false };
    this.#entries.push(entry);
    this.#write(entry);
    this.#shrink();
  }

  remove(entry: Queued): void {
    const at = this.#entries.indexOf(entry);
    if (at >= 0) this.#entries.splice(at, 1);
    this.#unlink(entry);
  }

  #load(): void {
    try {
      mkdirSync(this.#dir, { recursive: true, mode: 0o700 });
      for (const name of readdirSync(this.#dir).sort()) {
        const file = join(this.#dir, name);
        const report = name.endsWith(".json") ? readReport(file) : null;
        // A torn file is a report that was never whole.
        if (!report) {
          rmSync(file, { force: true, recursive: true });
          continue;
        }
        this.#made = Math.max(this.#made, Number.parseInt(name, 10) || 0);
        const bytes = Buffer.byteLength(JSON.stringify(report));
        this.#entries.push({ file, report, bytes, attempted: this.#entries.length === 0, stored: true });
      }
    } catch (error) {
      queueMicrotask(() => this.onTrouble(error));
    }
  }

  #shrink(): void {
    const size = () => this.#entries.reduce((sum, entry) => sum + entry.bytes, 0);
    const over = () => this.#entries.length > this.#limits.count || size() > this.#limits.bytes;
    while (over()) {
      const at = this.#entries[0]?.attempted ? 1 : 0;
      const oldest = this.#entries[at];
      const next = this.#entries[at + 1];
      if (!oldest || !next) return;
      this.dropped += 1;
      next.report = {
        ...next.report,
        events: lastEvents([...oldest.report.events, ...next.report.events], this.#limits.events),
        droppedReports: this.dropped,
      };
      this.#write(next);
      this.#entries.splice(at, 1);
      this.#unlink(oldest);
    }
  }

  #write(entry: Queued): void {
    const text = JSON.stringify(entry.report);
    entry.bytes = Buffer.byteLength(text);
    const beside = `${entry.file}.part`;
    try {
      writeFileSync(beside, text, { mode: 0o600 });
      renameSync(beside, entry.file);
      entry.stored = true;
    } catch (error) {
      this.onTrouble(error);
    }
  }

  #unlink(entry: Queued): void {
    try {
      if (entry.stored) rmSync(entry.file, { force: true });
    } catch (error) {
      this.onTrouble(error);
    }
  }
}

function lastEvents(events: HostEvent[], most: number): HostEvent[] {
  return events.length > most ? events.slice(-most) : events;
}

function readReport(file: string): Report | null {
  try {
    return Report.parse(JSON.parse(readFileSync(file, "utf8")));
  } catch {
    return null;
  }
}
