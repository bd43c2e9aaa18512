import { randomBytes } from "node:crypto";
import { mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { subjects } from "../declaration/names.ts";
import { type Broker, whileConnected } from "../io/nats.ts";
import { cleaned, fitReport } from "./clean.ts";
import { type QueueLimits, ReportQueue } from "./queue.ts";
import type { Heartbeat, Report } from "./schema.ts";

/** A report without what numbers it. */
export type ReportBody = Omit<Report, "hostStart" | "number" | "droppedReports">;

export interface ReportSender {
  /** Of this start: an ISO time and a random suffix; a later start orders after it, also when the clock was set back. */
  readonly hostStart: string;
  /** Reports that the broker has not taken yet. */
  readonly queued: number;
  /** Of the last report put, 0 before the first. */
  readonly number: number;
  /** Cleans, numbers and queues a report on disk, and sends it when it can. Returns its number. Never throws. */
  put(body: ReportBody): number;
  /** Sends a heartbeat, or nothing while the broker is away. */
  heartbeat(state: { sequence: number; revision: string | null }): boolean;
  /** Resolves once nothing is queued. */
  flushed(signal?: AbortSignal): Promise<void>;
  /** Stops sending; what is queued stays on disk for the next start. */
  close(): Promise<void>;
}

export interface SenderOptions {
  node: string;
  /** Of this sender alone, below the host's own folder. */
  dir: string;
  limits?: Partial<QueueLimits>;
  /** A disk or a broker that refuses; sending goes on. */
  onTrouble?(error: unknown): void;
}

const LIMITS: QueueLimits = { count: 200, bytes: 8 * 1024 * 1024, events: 1_000 };
const RETRY_WAITS = [100, 250, 500, 1_000, 2_000, 5_000];
/** For the headers and the subject, which count too. */
const ENVELOPE = 4 * 1024;
const LARGEST = 768 * 1024;

/** Sends the reports of one node, in order, each until JetStream has stored it. */
export function reportSender(broker: Broker, options: SenderOptions): ReportSender {
  const trouble = options.onTrouble ?? (() => {});
  const hostStart = nextHostStart(options.dir, trouble);
  const queue = new ReportQueue(join(options.dir, "queue"), { ...LIMITS, ...options.limits });
  queue.onTrouble = trouble;
  const ended = new AbortController();
  const drained = new Set<() => void>();
  let number = 0;
  let sending: Promise<void> | null = null;
  let woken = new AbortController();

  function wake(): void {
    woken.abort();
    if (sending || ended.signal.aborted) return;
    sending = send().finally(() => {
      sending = null;
      if (queue.length > 0 && broker.status.connected) wake();
    });
  }

  async function send(): Promise<void> {
    let failures = 0;
    while (broker.status.connected && !ended.signal.aborted) {
      const entry = queue.first();
      if (!entry) break;
      entry.attempted = true;
      const most = Math.min(LARGEST, broker.maxPayload - ENVELOPE);
      const { report } = entry;
      try {
        const stored = broker.js.publish(subjects.report(options.node), fitReport(report, most), {
          msgID: `${report.node}:${report.hostStart}:${report.number}`,
        });
        await whileConnected(broker, stored);
        queue.remove(entry);
        failures = 0;
      } catch (error) {
        if (ended.signal.aborted || !broker.status.connected) return;
        trouble(error);
        woken = new AbortController();
        const wait = RETRY_WAITS[Math.min(failures++, RETRY_WAITS.length - 1)]!;
        await delay(wait, undefined, { signal: AbortSignal.any([ended.signal, woken.signal]) }).catch(
          () => {},
        );
      }
    }
    if (queue.length === 0) for (const one of [...drained]) one();
  }

  const off = broker.onConnect(wake);
  return {
    hostStart,
    get queued() {
      return queue.length;
    },
    get number() {
      return number;
    },
    put(body) {
      number += 1;
      queue.add({ ...cleaned(body), hostStart, number, droppedReports: queue.dropped });
      if (!sending) wake();
      return number;
    },
    heartbeat({ sequence, revision }) {
      const at = new Date().toISOString();
      const beat: Heartbeat = { node: options.node, hostStart, at, sequence, revision, number };
      return broker.publishNow(subjects.heartbeat(options.node), Buffer.from(JSON.stringify(beat)));
    },
    flushed(signal) {
      if (queue.length === 0) return Promise.resolve();
      return new Promise((resolve, reject) => {
        const done = () => {
          drained.delete(done);
          signal?.removeEventListener("abort", given);
          resolve();
        };
        const given = () => {
          drained.delete(done);
          reject(signal?.reason);
        };
        drained.add(done);
        signal?.addEventListener("abort", given, { once: true });
      });
    },
    async close() {
      ended.abort();
      off();
      await sending;
    },
  };
}

/** Later than that of the start before, which is kept in `<dir>/last-start`. */
function nextHostStart(dir: string, trouble: (error: unknown) => void): string {
  const file = join(dir, "last-start");
  let last = Number.NaN;
  try {
    mkdirSync(dir, { recursive: true, mode: 0o700 });
    last = Date.parse(readFileSync(file, "utf8").slice(0, 24));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") trouble(error);
  }
  const now = Date.now();
  const at = Number.isNaN(last) ? now : Math.max(now, last + 1);
  const hostStart = `${new Date(at).toISOString()}-${randomBytes(3).toString("hex")}`;
  try {
    writeFileSync(`${file}.part`, hostStart, { mode: 0o600 });
    renameSync(`${file}.part`, file);
  } catch (error) {
    trouble(error);
  }
  return hostStart;
}
