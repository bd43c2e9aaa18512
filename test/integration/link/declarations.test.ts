import { randomBytes } from "node:crypto";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from "vitest";
import { objectStore } from "../../../src/declaration/objects.ts";
import {
  createPublisher,
  type Outgoing,
  type Publisher,
  publishedKeys,
} from "../../../src/declaration/publish.ts";
import { type ReceiveOptions, type Receiver, receiveDeclarations } from "../../../src/declaration/receive.ts";
import type { Declaration } from "../../../src/declaration/schema.ts";
import { ensureStreams } from "../../../src/declaration/streams.ts";
import { type Broker, connectBroker } from "../../../src/io/nats.ts";
import { anOutgoing, aSigner } from "../../support/declarations.ts";
import { eventually } from "../../support/eventually.ts";
import { startTestNats, type TestNats } from "../../support/nats.ts";

const signer = aSigner();
let nats: TestNats;
let broker: Broker;
let publisher: Publisher;
const receivers: Receiver[] = [];

beforeAll(async () => {
  nats = await startTestNats();
});
afterAll(() => nats.stop());
beforeEach(async () => {
  await nats.kill();
  nats.wipe();
  await nats.start();
  broker = connectBroker({ url: nats.url, name: "test" });
  await broker.connected();
  await ensureStreams(broker);
  publisher = createPublisher(broker, { signer, objects: objectStore(broker) });
});
afterEach(async () => {
  for (const receiver of receivers.splice(0)) await receiver.stop();
  await broker.close();
});

function receive(node: string, options: Partial<ReceiveOptions> = {}) {
  const seen: Declaration[] = [];
  const refused: string[] = [];
  const receiver = receiveDeclarations(broker, node, {
    pinnedKey: signer.publicKey,
    accepted: null,
    onDeclaration: (declaration) => void seen.push(declaration),
    onRefused: (refusal) => void refused.push(refusal.message),
    ...options,
  });
  receivers.push(receiver);
  const sequences = () => seen.map((declaration) => declaration.sequence);
  return { seen, refused, sequences, receiver };
}
const publish = async (...wanted: Outgoing[]) => (await publisher.publish(wanted)).map((one) => one.result);

it("a published declaration reaches its node, also one that was published before the node came", async () => {
  await publish(anOutgoing("web-1", 1));
  const { sequences, refused } = receive("web-1");
  await eventually(() => expect(sequences()).toEqual([1]));
  await publish(anOutgoing("web-1", 2, "b"));
  await eventually(() => expect(sequences()).toEqual([1, 2]));
  expect(refused).toEqual([]);
});

it("the same declaration published again stands already, also for a publisher that knows nothing", async () => {
  const wanted = anOutgoing("web-1", 1);
  expect(await publish(wanted)).toEqual(["published"]);
  publisher = createPublisher(broker, { signer, objects: objectStore(broker) });
  expect(await publish(wanted)).toEqual(["standing"]);
});

it("a higher sequence is never replaced, and is told to the publisher", async () => {
  await publish(anOutgoing("web-1", 7, "b"));
  const other = createPublisher(broker, { signer, objects: objectStore(broker) });
  expect(await other.publish([anOutgoing("web-1", 3)])).toMatchObject([{ result: "higher", found: 7 }]);
  expect(await other.publish([anOutgoing("web-1", 7, "c")])).toMatchObject([{ result: "higher", found: 7 }]);
  expect(await other.publish([anOutgoing("web-1", 8, "c")])).toMatchObject([{ result: "published" }]);
  // The first one remembers where the key stood before the other wrote.
  expect(await publish(anOutgoing("web-1", 4))).toEqual(["higher"]);
});

it("many publishers of one key end with the highest sequence", async () => {
  const publishers = [1, 2, 3, 4].map(() =>
    createPublisher(broker, { signer, objects: objectStore(broker) }),
  );
  const { sequences, refused } = receive("web-1");
  await Promise.all(
    Array.from({ length: 40 }, (_, at) =>
      eventually(async () => {
        const [one] = await publishers[at % 4]!.publish([anOutgoing("web-1", at + 1, `m${at}`)]);
        return one?.result !== "failed";
      }),
    ),
  );
  await eventually(() => expect(sequences().at(-1)).toBe(40));
  expect(sequences()).toEqual([...sequences()].sort((a, b) => a - b));
  expect(refused).toEqual([]);
});

it("LNK-2: looks that fall into an outage cost nothing and hold nothing up; what is published afterwards arrives", async () => {
  const { sequences, receiver } = receive("web-1", { every: 20 });
  await publish(anOutgoing("web-1", 1));
  await eventually(() => expect(sequences()).toEqual([1]));
  await nats.kill();
  await eventually(() => !broker.status.connected);
  receiver.look();
  const used = process.cpuUsage();
  // A look that starts itself again would keep this timer, and every other one, from ever firing.
  await delay(1_000);
  const { user, system } = process.cpuUsage(used);
  expect(user + system).toBeLessThan(700_000);
  await nats.start();
  await broker.connected({ within: 10_000 });
  await eventually(async () => (await publish(anOutgoing("web-1", 2, "b")))[0] === "published");
  await eventually(() => expect(sequences()).toEqual([1, 2]));
});

it("a declaration above 512 KiB goes through the objects and reaches its node whole", async () => {
  const { seen } = receive("web-1");
  const large = anOutgoing("web-1", 1, "a", 3_000_000);
  expect(await publish(large)).toEqual(["published"]);
  await eventually(() => expect(seen).toHaveLength(1));
  expect(seen[0]?.body.modules[1]?.name).toHaveLength(3_000_000);
});

it("LNK-4: a late copy of revision 1 is refused once and never undoes 2", async () => {
  const { sequences, refused } = receive("web-1", { every: 50 });
  await publish(anOutgoing("web-1", 1));
  const first = await (await broker.manager()).streams.getMessage("KV_declarations", {
    last_by_subj: "$KV.declarations.web-1",
  });
  await publish(anOutgoing("web-1", 2, "b"));
  await eventually(() => expect(sequences().at(-1)).toBe(2));
  const before = sequences();
  await broker.js.publish("$KV.declarations.web-1", first.data);
  await eventually(() => expect(refused).toHaveLength(1));
  expect(refused[0]).toContain("lower than 2");
  await publish(anOutgoing("web-1", 3, "c"));
  await eventually(() => expect(sequences()).toEqual([...before, 3]));
  expect(refused).toHaveLength(1);
});

it("LNK-4: while one declaration is being applied only the newest waits", async () => {
  const applied: number[] = [];
  let release = () => {};
  const { receiver } = receive("web-1", {
    onDeclaration: async (declaration) => {
      applied.push(declaration.sequence);
      if (applied.length === 1) await new Promise<void>((resolve) => (release = resolve));
    },
  });
  await publish(anOutgoing("web-1", 1));
  await eventually(() => expect(applied).toEqual([1]));
  // One after the other, as a burst of merges would; the server takes them faster than the host applies one.
  for (let sequence = 2; sequence <= 1_001; sequence++)
    expect(await publish(anOutgoing("web-1", sequence, `m${sequence}`))).toEqual(["published"]);
  receiver.look();
  release();
  await eventually(() => expect(applied.at(-1)).toBe(1_001));
  expect(applied.length).toBeLessThan(10);
});

it("SEC-6: each of two nodes receives its own, and refuses the other's put under its key, once", async () => {
  const one = receive("web-1", { every: 50 });
  const two = receive("web-2", { every: 50 });
  await publish(anOutgoing("web-1", 1), anOutgoing("web-2", 1));
  await eventually(() => expect([one.sequences(), two.sequences()]).toEqual([[1], [1]]));
  await publish(anOutgoing("web-2", 2, "b"));
  const stolen = await (await broker.manager()).streams.getMessage("KV_declarations", {
    last_by_subj: "$KV.declarations.web-2",
  });
  await broker.js.publish("$KV.declarations.web-1", stolen.data);
  await eventually(() => expect(one.refused).toHaveLength(1));
  expect(one.refused[0]).toContain('it is for "web-2"');
  expect(one.sequences()).toEqual([1]);
  await broker.js.publish("$KV.declarations.web-1", "not JSON");
  await eventually(() => expect(one.refused).toHaveLength(2));
});

it("LNK-6: a node name with dots has a key of its own that no other name can have", async () => {
  const dotted = receive("a.b");
  const plain = receive("a-b");
  await publish(anOutgoing("a.b", 5), anOutgoing("a-b", 6));
  await eventually(() => expect([dotted.sequences(), plain.sequences()]).toEqual([[5], [6]]));
  expect([...(await publishedKeys(broker))].sort()).toEqual(["a-b", "a_b"]);
});

it("a put that the stream refuses is not taken, although the subscription shows it", async () => {
  await publish(anOutgoing("web-1", 1));
  const { sequences, refused } = receive("web-1");
  await eventually(() => expect(sequences()).toEqual([1]));
  const other = createPublisher(broker, { signer, objects: objectStore(broker) });
  await other.publish([anOutgoing("web-2", 2)]);
  const late = await (await broker.manager()).streams.getMessage("KV_declarations", {
    last_by_subj: "$KV.declarations.web-2",
  });
  await expect(
    broker.js.publish("$KV.declarations.web-1", late.data, { expect: { lastSubjectSequence: 0 } }),
  ).rejects.toMatchObject({ api_error: { err_code: 10071 } });
  await publish(anOutgoing("web-1", 3, "c"));
  await eventually(() => expect(sequences()).toEqual([1, 3]));
  expect(refused).toEqual([]);
});

it("after the store was wiped nothing is removed, and what is published again arrives", async () => {
  const { sequences, refused } = receive("web-1");
  await publish(anOutgoing("web-1", 1));
  await eventually(() => expect(sequences()).toEqual([1]));
  await nats.kill();
  nats.wipe();
  await nats.start();
  await eventually(() => broker.status.connected);
  expect(await publish(anOutgoing("web-1", 1))).toEqual(["failed"]);
  expect((await ensureStreams(broker)).fresh).toContain("KV_declarations");
  expect((await ensureStreams(broker)).fresh).toEqual([]);
  await publish(anOutgoing("web-1", 1));
  await publish(anOutgoing("web-1", 2, "b"));
  await eventually(() => expect(sequences()).toEqual([1, 2]));
  expect(refused).toEqual([]);
});

it("a declaration that could not be taken comes again", async () => {
  let tries = 0;
  const failures: unknown[] = [];
  receive("web-1", {
    every: 30,
    onDeclaration: () => {
      if (++tries < 3) throw new Error("disk full");
    },
    onError: (error) => void failures.push(error),
  });
  await publish(anOutgoing("web-1", 1));
  await eventually(() => expect(tries).toBe(3));
  expect(failures).toHaveLength(2);
});

it("an object is put once, also by several at once, and comes back by its digest, to memory and to a file", async () => {
  const stores = [objectStore(broker), objectStore(broker), objectStore(broker)];
  const bytes = randomBytes(2_500_000);
  const puts = await Promise.all(stores.map((store) => store.put(bytes)));
  expect(puts.filter((put) => put.stored)).toHaveLength(1);
  const { sha256 } = puts[0]!;
  expect(await stores[1]!.put(bytes)).toEqual({ sha256, stored: false });
  expect(await stores[0]!.has(sha256)).toBe(true);
  expect((await stores[0]!.get(sha256)).equals(bytes)).toBe(true);
  const state = (await (await broker.manager()).streams.info("OBJ_objects")).state;
  expect(state.messages).toBe(Math.ceil(bytes.length / (512 * 1024)) + 1);
  const dir = mkdtempSync(join(tmpdir(), "mesh-object-"));
  await stores[0]!.getToFile(sha256, join(dir, "one"));
  expect(readFileSync(join(dir, "one")).equals(bytes)).toBe(true);
  await expect(stores[0]!.getToFile("0".repeat(64), join(dir, "two"))).rejects.toMatchObject({
    code: "object-missing",
  });
  expect(readdirSync(dir)).toEqual(["one"]);
  rmSync(dir, { recursive: true });
  // The library's own object store reads the same layout.
  const blob = await (await broker.js.views.os("objects")).getBlob(sha256);
  expect(Buffer.from(blob ?? []).equals(bytes)).toBe(true);
  const { sha256: empty } = await stores[0]!.put(new Uint8Array());
  expect(await stores[0]!.get(empty)).toHaveLength(0);
});

it("an object whose bytes were changed in the store is refused", async () => {
  const store = objectStore(broker);
  const { sha256 } = await store.put(Buffer.from("right"));
  const manager = await broker.manager();
  const meta = await manager.streams.getMessage("OBJ_objects", { seq: 2 });
  const { nuid } = meta.json<{ nuid: string }>();
  await manager.streams.purge("OBJ_objects", { filter: `$O.objects.C.${nuid}` });
  await expect(store.get(sha256)).rejects.toMatchObject({ code: "object-missing" });
  await broker.js.publish(`$O.objects.C.${nuid}`, "wrong");
  await expect(store.get(sha256)).rejects.toMatchObject({ code: "object-corrupt" });
});
