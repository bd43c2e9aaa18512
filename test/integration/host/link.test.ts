import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Subscription } from "nats";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { callNodeVerb } from "../../../src/cli/call.ts";
import { canonicalJson, revisionOf } from "../../../src/declaration/canonical.ts";
import { objectStore } from "../../../src/declaration/objects.ts";
import { createPublisher } from "../../../src/declaration/publish.ts";
import type { Signer } from "../../../src/declaration/sign.ts";
import { ensureStreams } from "../../../src/declaration/streams.ts";
import { type Broker, connectBroker } from "../../../src/io/nats.ts";
import type { Report } from "../../../src/report/schema.ts";
import type { DeclaredResource } from "../../../src/resources/declared.ts";
import { aSigner } from "../../support/declarations.ts";
import { eventually } from "../../support/eventually.ts";
import { aDeclarationOf, aFile, aService, hostProgram } from "../../support/host.ts";
import { startTestNats, type TestNats } from "../../support/nats.ts";

let host: Awaited<ReturnType<typeof hostProgram>>;
let nats: TestNats;
let broker: Broker;
let signer: Signer;
let reports: Report[];
let heard: Subscription;

beforeAll(async () => {
  nats = await startTestNats();
  broker = connectBroker({ url: nats.url, name: "test" });
  await broker.connected({ within: 10_000 });
});
afterAll(async () => {
  await broker.close();
  await nats.stop();
});
beforeEach(async () => {
  const manager = await broker.manager();
  for (const { config } of await manager.streams.list().next()) await manager.streams.delete(config.name);
  await ensureStreams(broker);
  reports = [];
  heard = broker.connection.subscribe("mesh.events.web-1.report", {
    callback: (_error, message) => void reports.push(JSON.parse(Buffer.from(message.data).toString())),
  });
  signer = aSigner();
  host = await hostProgram();
});
afterEach(async () => {
  heard.unsubscribe();
  await host.end();
});

const newest = () => reports.at(-1);
/** Everything that JetStream has, also what came while this test was not connected. */
async function storedReports(): Promise<Report[]> {
  const { streams } = await broker.manager();
  const { state } = await streams.info("EVENTS");
  const all: Report[] = [];
  for (let seq = Math.max(1, state.first_seq); seq <= state.last_seq; seq++)
    all.push((await streams.getMessage("EVENTS", { seq })).json<Report>());
  return all;
}

const context = () => {
  const file = join(host.dir, "context.json");
  writeFileSync(file, JSON.stringify({ broker: nats.url, publicKey: signer.publicKey }));
  return ["--context", file];
};

async function publish(
  sequence: number,
  resources: DeclaredResource[],
  by: Signer = signer,
): Promise<string> {
  const { body } = aDeclarationOf(resources);
  const revision = revisionOf(body);
  const publisher = createPublisher(broker, { signer: by, objects: objectStore(broker) });
  const outgoing = {
    node: "web-1",
    sequence,
    revision,
    commit: "c0ffee",
    tier: 2 as const,
    body: canonicalJson(body),
  };
  expect(await publisher.publish([outgoing])).toMatchObject([{ result: "published" }]);
  return revision;
}

test("a published declaration is applied and reported, large bodies come by their digest, and a wrong signature is refused", async () => {
  const run = host.run(context());
  const bytes = Buffer.from("large ".repeat(4_000));
  const object = createHash("sha256").update(bytes).digest("hex");
  await objectStore(broker).put(bytes);
  const large = aFile("web.large", "/etc/large", "", { body: { object, size: bytes.length } });
  const revision = await publish(1, [
    large,
    aService("web.server", ["sh", "-c", "echo hello; exec sleep 73000"]),
  ]);
  await eventually(() =>
    expect(newest()).toMatchObject({ outcome: "applied", revision, sequence: 1, commit: "c0ffee" }),
  );
  expect(readFileSync(host.real("/etc/large")).equals(bytes)).toBe(true);
  const applied = reports.filter(({ events }) => events.some(({ kind }) => kind === "applied"));
  expect(applied).toHaveLength(1);

  await publish(2, [aFile("web.other", "/etc/other", "o")], aSigner());
  await eventually(() => expect(newest()).toMatchObject({ outcome: "refused", revision, sequence: 1 }));
  expect(readFileSync(host.real("/etc/large")).equals(bytes)).toBe(true);
  await publish(3, [large]);
  await eventually(() => expect(newest()).toMatchObject({ outcome: "applied", sequence: 3 }));
  run.child.kill("SIGTERM");
  expect(await run.ended).toEqual({ code: 0, signal: null });
});

test("a large file is put back while the broker is away, and what happened meanwhile is reported afterwards", async () => {
  const bytes = Buffer.from("large ".repeat(4_000));
  const object = createHash("sha256").update(bytes).digest("hex");
  await objectStore(broker).put(bytes);
  host.run(context());
  await publish(1, [aFile("web.large", "/etc/large", "", { body: { object, size: bytes.length } })]);
  await eventually(() => expect(newest()).toMatchObject({ outcome: "applied" }));
  await nats.kill();
  writeFileSync(host.real("/etc/large"), "by hand");
  await eventually(() => readFileSync(host.real("/etc/large")).equals(bytes));
  await nats.start();
  await eventually(
    async () => {
      const kinds = (await storedReports()).flatMap(({ events }) => events).map(({ kind }) => kind);
      expect(kinds).toContain("drift");
    },
    { within: 25_000, every: 200 },
  );
});

test("LNK-4: a newer declaration during a long apply is applied after it, once, and a late copy of the older changes nothing", async () => {
  host.run(context());
  const stubborn = aService("old.server", ["sh", "-c", "trap '' TERM; while :; do sleep 1; done"], {
    stop: { signal: "SIGTERM", grace: 2_500 },
  });
  await publish(1, [stubborn]);
  await eventually(() => expect(newest()).toMatchObject({ outcome: "applied", sequence: 1 }));
  // Stopping it takes the whole grace; two more come meanwhile.
  await publish(2, [aFile("web.conf", "/etc/web", "two")]);
  await eventually(() => readFileSync(host.real("/etc/web"), "utf8") === "two");
  await publish(3, [aFile("web.conf", "/etc/web", "three")]);
  await publish(4, [aFile("web.conf", "/etc/web", "four")]);
  await eventually(() => expect(newest()).toMatchObject({ outcome: "applied", sequence: 4 }), {
    within: 20_000,
  });
  expect(readFileSync(host.real("/etc/web"), "utf8")).toBe("four");
  const old = aDeclarationOf([aFile("web.conf", "/etc/web", "two")]);
  const late = { ...old, revision: revisionOf(old.body), sequence: 2, commit: "c0ffee" };
  const signed = { ...late, signature: signer.sign(late) };
  await broker.js.publish("$KV.declarations.web-1", JSON.stringify({ sequence: 2, declaration: signed }));
  await eventually(() => expect(newest()).toMatchObject({ outcome: "refused", sequence: 4 }));
  expect(readFileSync(host.real("/etc/web"), "utf8")).toBe("four");
  const applies = reports
    .flatMap(({ events }) => events)
    .filter(({ kind, resource }) => kind === "changed" && resource === "web.conf");
  expect(applies.length).toBeLessThanOrEqual(3);
});

test("PLN-4: a process that prints a zero byte and broken text and fails is reported as text, and later reports arrive", async () => {
  host.run(context());
  await publish(1, [
    aService("web.bad", ["sh", "-c", "printf 'a\\000b\\377c\\n'; exit 1"], { run: "once" }),
    aFile("web.conf", "/etc/web", "w"),
  ]);
  await eventually(() => expect(newest()).toMatchObject({ outcome: "waiting" }));
  const bad = newest()!.resources.find(({ id }) => id === "web.bad")!;
  expect(bad.last?.join("\n")).toMatch(/^a.b.c/);
  expect(JSON.stringify(newest())).not.toContain("\\u0000");
  await publish(2, [aFile("web.conf", "/etc/web", "w")]);
  await eventually(() => expect(newest()).toMatchObject({ outcome: "applied", sequence: 2 }));
});

test("answers logs, restart and diff on the node's verbs", async () => {
  host.run(context());
  await publish(1, [aService("web.server", ["sh", "-c", "echo hello; exec sleep 73001"])]);
  await eventually(() => expect(newest()).toMatchObject({ outcome: "applied" }));
  const call = (verb: string, body: object) => callNodeVerb(broker, "web-1", verb, body, { timeout: 5_000 });
  expect(await call("logs", { resource: "web.server", lines: 10 })).toMatchObject({
    lines: ["hello"],
    position: 6,
  });
  const before = newest()!.resources[0]!.process!.pid;
  expect(await call("restart", { resource: "web.server" })).toEqual({
    node: "web-1",
    resource: "web.server",
  });
  await eventually(() => {
    const { process } = newest()!.resources[0]!;
    expect(process).toMatchObject({ state: "running" });
    expect(process!.pid).not.toBe(before);
  });
  const more = (await call("logs", { resource: "web.server", lines: 0, after: 6 })) as { lines: string[] };
  expect(more.lines).toContain("hello");
  expect(await call("diff", {})).toEqual({ node: "web-1", differences: [] });
  expect(await call("diff", { resource: "web.server" })).toEqual({ node: "web-1", differences: [] });
  await expect(call("diff", { resource: "web.nothing" })).rejects.toThrow(/no such resource.*web\.server/);
  await expect(call("logs", { resource: "web.nothing", lines: 1 })).rejects.toThrow(/no such process/);
});
