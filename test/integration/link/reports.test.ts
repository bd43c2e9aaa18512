import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from "vitest";
import { ensureStreams } from "../../../src/declaration/streams.ts";
import { type Broker, connectBroker } from "../../../src/io/nats.ts";
import { type Heard, watchHeartbeats } from "../../../src/report/heartbeats.ts";
import { readReport } from "../../../src/report/read.ts";
import type { Report } from "../../../src/report/schema.ts";
import {
  type ReportBody,
  type ReportSender,
  reportSender,
  type SenderOptions,
} from "../../../src/report/send.ts";
import { eventually } from "../../support/eventually.ts";
import { startTestNats, type TestNats } from "../../support/nats.ts";

let nats: TestNats;
let broker: Broker;
let dir: string;
const senders: ReportSender[] = [];

beforeAll(async () => {
  nats = await startTestNats();
});
afterAll(() => nats.stop());
beforeEach(async () => {
  dir = mkdtempSync(join(tmpdir(), "mesh-reports-"));
  await nats.kill();
  nats.wipe();
  await nats.start();
  broker = connectBroker({ url: nats.url, name: "test", spread: 200 });
  await broker.connected();
  await ensureStreams(broker);
});
afterEach(async () => {
  for (const one of senders.splice(0)) await one.close();
  await broker.close();
  rmSync(dir, { recursive: true, force: true });
});

function aReport(detail: string, over: Partial<ReportBody> = {}): ReportBody {
  return {
    format: 1,
    node: "web-1",
    at: "2026-01-01T00:00:00.000Z",
    version: "0.1.0",
    arch: "x64",
    outcome: "applied",
    error: null,
    revision: null,
    sequence: 1,
    commit: null,
    resources: [],
    differences: [],
    handovers: [],
    events: [{ at: "2026-01-01T00:00:00.000Z", kind: "note", resource: null, detail }],
    limits: [],
    ...over,
  };
}
function sender(options: Partial<SenderOptions> = {}): ReportSender {
  const one = reportSender(broker, { node: "web-1", dir, ...options });
  senders.push(one);
  return one;
}
/** All reports that the stream holds, in its order. */
async function stored(): Promise<Report[]> {
  const manager = await broker.manager();
  const { state } = await manager.streams.info("EVENTS");
  const reports: Report[] = [];
  for (let seq = state.first_seq; seq <= state.last_seq; seq++) {
    const message = await manager.streams.getMessage("EVENTS", { seq });
    const report = readReport(message);
    if (typeof report === "string") throw new Error(report);
    reports.push(report);
  }
  return reports;
}
const details = (reports: Report[]) => reports.flatMap((one) => one.events.map((event) => event.detail));

it("LNK-2: reports made while the broker is away arrive afterwards, each once, in order, also across a restart of the host", async () => {
  const first = sender();
  first.put(aReport("before"));
  await first.flushed();
  await nats.kill();
  await eventually(() => !broker.status.connected);
  first.put(aReport("away 1"));
  first.put(aReport("away 2"));
  await first.close();
  const second = sender();
  expect(second.hostStart > first.hostStart).toBe(true);
  second.put(aReport("second start"));
  expect(second.queued).toBe(3);
  await nats.start();
  await second.flushed(AbortSignal.timeout(10_000));
  const reports = await stored();
  expect(details(reports)).toEqual(["before", "away 1", "away 2", "second start"]);
  expect(reports.map((one) => one.number)).toEqual([1, 2, 3, 1]);
  expect(readdirSync(join(dir, "queue"))).toEqual([]);
});

it("kill -9 of the broker in the middle of many reports loses none and stores none twice", async () => {
  const one = sender();
  for (let n = 1; n <= 60; n++) one.put(aReport(`r${n}`));
  await eventually(() => one.queued < 50);
  await nats.kill();
  await nats.start();
  await one.flushed(AbortSignal.timeout(15_000));
  const got = details(await stored());
  expect(got).toEqual(Array.from({ length: 60 }, (_, at) => `r${at + 1}`));
});

it("over its bound the oldest reports go, are counted, and their events live on in the next", async () => {
  await nats.kill();
  await eventually(() => !broker.status.connected);
  const one = sender({ limits: { count: 5 } });
  for (let n = 1; n <= 20; n++) one.put(aReport(`r${n}`));
  expect(one.queued).toBe(5);
  await nats.start();
  await one.flushed(AbortSignal.timeout(10_000));
  const reports = await stored();
  expect(reports.map((report) => report.number)).toEqual([16, 17, 18, 19, 20]);
  expect(details(reports)).toEqual(Array.from({ length: 20 }, (_, at) => `r${at + 1}`));
  expect(reports.at(-1)?.droppedReports).toBeGreaterThan(0);
  expect(reports[0]?.droppedReports).toBe(15);
});

it("PLN-4: a report with zero bytes, half characters and a flood of output arrives as clean text of bounded size", async () => {
  const one = sender();
  const last = Array.from({ length: 2_000 }, () => "y".repeat(1_000));
  const resource = { type: "process", state: "failed" as const, note: null, process: null };
  one.put(
    aReport("bad \u0000 \ud800 end", {
      resources: [{ id: "web.server", error: "exit 1\u0000", last, ...resource }],
    }),
  );
  one.put(aReport("next"));
  await one.flushed();
  const reports = await stored();
  expect(details(reports)).toEqual(["bad \ufffd \ufffd end", "next"]);
  expect(reports[0]?.resources[0]).toMatchObject({ id: "web.server", error: "exit 1\ufffd" });
  expect(JSON.stringify(reports[0]).length).toBeLessThan(800_000);
});

it("a torn file in the queue is passed over, and a full or read-only disk stops no report", async () => {
  const first = sender();
  await first.close();
  writeFileSync(join(dir, "queue", "000000000001.json"), '{"format":1,"no');
  rmSync(join(dir, "last-start"));
  const troubles: unknown[] = [];
  const second = sender({ onTrouble: (error) => void troubles.push(error) });
  rmSync(join(dir, "queue"), { recursive: true });
  writeFileSync(join(dir, "queue"), "not a folder");
  second.put(aReport("in memory"));
  await second.flushed();
  expect(details(await stored())).toEqual(["in memory"]);
  expect(troubles.length).toBeGreaterThan(0);
});

it("reports wait while the stream is not there yet", async () => {
  await (await broker.manager()).streams.delete("EVENTS");
  const one = sender();
  one.put(aReport("early"));
  await eventually(() => one.queued === 1);
  await ensureStreams(broker);
  await one.flushed(AbortSignal.timeout(10_000));
  expect(details(await stored())).toEqual(["early"]);
});

it("of a node that reports much only its own older reports are pushed out", async () => {
  const quiet = sender();
  quiet.put(aReport("quiet"));
  await quiet.flushed();
  await Promise.all(
    Array.from({ length: 300 }, (_, at) => broker.js.publish("mesh.events.busy.report", String(at))),
  );
  const { state } = await (await broker.manager()).streams.info("EVENTS");
  expect(state.messages).toBe(65);
  const message = await (await broker.manager()).streams.getMessage("EVENTS", {
    last_by_subj: "mesh.events.web-1.report",
  });
  expect(message.string()).toContain("quiet");
});

it("heartbeats come in batches, the newest of each node; one that speaks for another node is not heard", async () => {
  const ended = new AbortController();
  const batches: Heard[][] = [];
  watchHeartbeats(broker, { every: 50, signal: ended.signal, onBatch: (beats) => void batches.push(beats) });
  await broker.connection.flush();
  const one = sender();
  one.heartbeat({ sequence: 1, revision: null });
  one.heartbeat({ sequence: 2, revision: "r" });
  const beat = { node: "web-2", hostStart: "x", at: "x", sequence: 9, revision: null, number: 0 };
  broker.connection.publish("mesh.heartbeat.web-3", JSON.stringify(beat));
  broker.connection.publish("mesh.heartbeat.web-3", "no JSON");
  await eventually(() => batches.flat().some(({ beat }) => beat.sequence === 2));
  expect(batches.flat().every(({ beat }) => beat.node === "web-1")).toBe(true);
  expect(batches.flat().length).toBeLessThanOrEqual(2);
  ended.abort();
});
