import { existsSync } from "node:fs";
import { afterEach, expect, it } from "vitest";
import { type Broker, connectBroker, parseBrokerUrl, withoutCredentials } from "../../../src/io/nats.ts";
import { eventually } from "../../support/eventually.ts";
import { startTestNats, type TestNats } from "../../support/nats.ts";

const open: Array<{ close(): Promise<void> } | { stop(): Promise<void> }> = [];
afterEach(async () => {
  for (const one of open.splice(0).reverse()) await ("close" in one ? one.close() : one.stop());
});
function keep<T extends Broker | TestNats>(one: T): T {
  open.push(one);
  return one;
}

it("LNK-2: a link opened before the broker exists waits, says so without the credential, and connects", async () => {
  const nats = keep(await startTestNats({ started: false }));
  const said: string[] = [];
  const log = {
    info: (facts: object, text: string) => said.push(JSON.stringify(facts) + text),
    warn: (facts: object, text: string) => said.push(JSON.stringify(facts) + text),
  };
  const broker = keep(connectBroker({ url: nats.url, name: "test", log }));
  await eventually(() => broker.status.error !== null);
  expect(broker.status).toMatchObject({ connected: false });
  await expect(broker.connected({ within: 50 })).rejects.toMatchObject({ code: "broker-unreachable" });
  await nats.start();
  await broker.connected({ within: 10_000 });
  expect(said.join("\n")).toMatch(/waiting for the broker 127\.0\.0\.1.*connected to the broker/s);
  expect(said.join("\n")).not.toContain(nats.pass);
});

it("LNK-2: a link reconnects after kill -9 of the broker, shows since when it is down, and runs its listeners again", async () => {
  const nats = keep(await startTestNats());
  const broker = keep(connectBroker({ url: nats.url, name: "test" }));
  let connects = 0;
  broker.onConnect(() => void connects++);
  await eventually(() => connects === 1);
  await nats.kill();
  await eventually(() => !broker.status.connected);
  expect(Date.parse(broker.status.since)).toBeLessThanOrEqual(Date.now());
  expect(broker.publishNow("mesh.heartbeat.a", new Uint8Array())).toBe(false);
  await nats.start();
  await eventually(() => connects === 2);
  expect(broker.status.connected).toBe(true);
});

it("a link with a wrong password goes on trying and names the refusal, not the password", async () => {
  const nats = keep(await startTestNats());
  const broker = keep(connectBroker({ url: nats.url.replace(nats.pass, "wrong-password"), name: "test" }));
  const refusal = await broker.connected({ within: 1_000 }).catch((error: Error) => error.message);
  expect(refusal).toMatch(/authoriz/i);
  expect(refusal).not.toContain("wrong-password");
});

it("stopping a test server leaves no folder behind", async () => {
  const nats = await startTestNats();
  await nats.stop();
  expect(existsSync(nats.dir)).toBe(false);
});

it("a broker URL is taken apart, and shown without its credential in every error", () => {
  expect(parseBrokerUrl("nats://me:p%40ss@a:1,tls://b:2")).toEqual({
    servers: ["a:1", "b:2"],
    tls: true,
    user: "me",
    pass: "p@ss",
    token: undefined,
  });
  expect(() => parseBrokerUrl("http://me:hidden@a:1")).toThrow(/http:\/\/a:1/);
  expect(() => parseBrokerUrl("")).toThrow("nothing");
  expect(withoutCredentials("dial nats://me:pw@a:1 failed")).toBe("dial nats://a:1 failed");
});
