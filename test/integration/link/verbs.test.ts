import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { callNodeVerb, callVerb } from "../../../src/cli/call.ts";
import { serveVerbs } from "../../../src/controller/verb-service.ts";
import { ensureStreams } from "../../../src/declaration/streams.ts";
import { meshError } from "../../../src/errors.ts";
import { serveNodeVerbs } from "../../../src/host/verb-service.ts";
import { type Broker, connectBroker } from "../../../src/io/nats.ts";
import type { VerbHandler, VerbService } from "../../../src/verbs/serve.ts";
import { eventually } from "../../support/eventually.ts";
import { startTestNats, type TestNats } from "../../support/nats.ts";

const SEAT = "mesh-controller";
let nats: TestNats;
const brokers: Broker[] = [];
const services: VerbService[] = [];

beforeAll(async () => {
  nats = await startTestNats({ maxPayload: 64 * 1024 });
});
afterAll(() => nats.stop());
afterEach(async () => {
  for (const one of services.splice(0)) await one.stop();
  for (const one of brokers.splice(0)) await one.close();
});

async function link(name: string): Promise<Broker> {
  const one = connectBroker({ url: nats.url, name, spread: 200 });
  brokers.push(one);
  await one.connected();
  return one;
}
async function member(handlers: Record<string, VerbHandler>) {
  const service = serveVerbs(await link("member"), SEAT, handlers);
  services.push(service);
  const asker = brokers.at(-1)!;
  await eventually(() => asker.connection.request("$SRV.PING.mesh-controller").then(Boolean, () => false));
  return service;
}

class Refused extends meshError(
  "refused-here",
  "wait",
  (f: { plan: number }) => `plan ${f.plan}: is superseded;\nconfirm the newer one`,
) {}

it("a verb is answered with the document its handler returns, by one of two members, with the call's id", async () => {
  const ids: string[] = [];
  const status: VerbHandler = async (body, { id }) => {
    ids.push(id);
    return { asked: body };
  };
  await member({ status });
  await member({ status });
  const caller = await link("caller");
  expect(await callVerb(caller, SEAT, "status", { a: 1 }, { id: "call-1" })).toEqual({ asked: { a: 1 } });
  expect(ids).toEqual(["call-1"]);
});

it("stock micro tools find the service, its verbs and its queue group", async () => {
  await member({ status: async () => ({}) });
  const caller = await link("caller");
  const found = [];
  for await (const info of await caller.connection.services.client().info(SEAT)) found.push(info);
  expect(found).toHaveLength(1);
  expect(found[0]?.endpoints).toMatchObject([
    { name: "status", subject: "mesh.seat.mesh-controller.status", queue_group: SEAT },
    { name: "status-all", subject: "mesh.seat.mesh-controller.status.all" },
  ]);
});

it("what a handler throws comes back with its code, facts, next and one line, and in service-error headers", async () => {
  await member({
    stop: async () => {
      throw new Refused({ plan: 7 });
    },
    boom: async () => {
      throw new Error("dial nats://me:secret@x failed");
    },
  });
  const caller = await link("caller");
  await expect(callVerb(caller, SEAT, "stop", {})).rejects.toMatchObject({
    code: "refused-here",
    next: "wait",
    facts: { plan: 7 },
    message: "plan 7: is superseded; confirm the newer one",
  });
  const raw = await caller.connection.request("mesh.seat.mesh-controller.stop", "{}");
  expect(raw.headers?.get("Nats-Service-Error-Code")).toBe("409");
  expect(raw.headers?.get("Nats-Service-Error")).toContain("plan 7");
  const hidden = await callVerb(caller, SEAT, "boom", {}).catch((error: Error) => error);
  expect(hidden).toMatchObject({ code: "internal", message: "dial nats://x failed" });
  const unreadable = await caller.connection.request("mesh.seat.mesh-controller.stop", "{");
  expect(unreadable.headers?.get("Nats-Service-Error")).toContain("no JSON");
});

it("an answer larger than a message may be reaches the caller whole", async () => {
  await ensureStreams(await link("controller"));
  const large = "x".repeat(300_000);
  await member({ status: async () => ({ large }) });
  expect(await callVerb(await link("caller"), SEAT, "status", {})).toEqual({ large });
});

it("a call that a silent member of the queue group got is answered by another, and takes effect once", async () => {
  const silent = await link("paused");
  silent.connection.subscribe(`mesh.seat.${SEAT}.status`, { queue: SEAT, callback: () => {} });
  await silent.connection.flush();
  let runs = 0;
  await member({ status: async () => ++runs });
  const caller = await link("caller");
  const answers = await Promise.all(Array.from({ length: 20 }, () => callVerb(caller, SEAT, "status", {})));
  expect(new Set(answers).size).toBe(20);
  expect(runs).toBe(20);
});

it("a retry of a call that is still being worked waits for the same run", async () => {
  let runs = 0;
  let release = () => {};
  await member({
    slow: async () => {
      runs++;
      await new Promise<void>((resolve) => (release = resolve));
      return "done";
    },
  });
  const caller = await link("caller");
  let heard = 0;
  caller.connection.subscribe(`mesh.seat.${SEAT}.slow.all`, { callback: () => void heard++ });
  const answer = callVerb(caller, SEAT, "slow", {});
  await eventually(() => heard > 0);
  release();
  expect(await answer).toBe("done");
  expect(runs).toBe(1);
});

it("a call that nobody answers fails, saying that no controller answered; one without a broker says that", async () => {
  const caller = await link("caller");
  await expect(callVerb(caller, SEAT, "status", {}, { timeout: 600 })).rejects.toMatchObject({
    code: "controller-unreachable",
  });
  await expect(callNodeVerb(caller, "db.example.com", "logs", {}, { timeout: 300 })).rejects.toMatchObject({
    code: "host-unreachable",
    facts: { node: "db.example.com" },
  });
  const nowhere = connectBroker({ url: "nats://u:p@127.0.0.1:1", name: "caller" });
  brokers.push(nowhere);
  await expect(callVerb(nowhere, SEAT, "status", {}, { timeout: 300 })).rejects.toMatchObject({
    code: "broker-unreachable",
  });
});

it("a call made before a member is there is answered once it came", async () => {
  const caller = await link("caller");
  const answer = callVerb(caller, SEAT, "status", {});
  await member({ status: async () => "late" });
  expect(await answer).toBe("late");
});

it("a member that stops answers what it has in hand; none of the calls meanwhile fails", async () => {
  const status: VerbHandler = async () => "ok";
  const first = await member({ status });
  await member({ status });
  const caller = await link("caller");
  const calls = Array.from({ length: 200 }, (_, at) => {
    if (at === 100) void first.stop();
    return callVerb(caller, SEAT, "status", {});
  });
  expect(new Set(await Promise.all(calls))).toEqual(new Set(["ok"]));
});

it("a service started before the broker answers once it is there, and again after a kill -9 of the broker", async () => {
  const late = await startTestNats({ started: false });
  const broker = connectBroker({ url: late.url, name: "member", spread: 200 });
  const caller = connectBroker({ url: late.url, name: "caller", spread: 200 });
  const service = serveNodeVerbs(broker, "db.example.com", { logs: async () => "lines" });
  try {
    await late.start();
    expect(await callNodeVerb(caller, "db.example.com", "logs", {})).toBe("lines");
    await late.kill();
    await late.start();
    expect(await callNodeVerb(caller, "db.example.com", "logs", {})).toBe("lines");
  } finally {
    await service.stop();
    await broker.close();
    await caller.close();
    await late.stop();
  }
});
