import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from "vitest";
import { ensureStreams, keepStreams } from "../../../src/declaration/streams.ts";
import { type Broker, connectBroker } from "../../../src/io/nats.ts";
import {
  type ConsumeOptions,
  type Consumption,
  consumeStream,
  type Position,
} from "../../../src/report/consume.ts";
import { eventually } from "../../support/eventually.ts";
import { startTestNats, type TestNats } from "../../support/nats.ts";

let nats: TestNats;
let broker: Broker;
const running: Consumption[] = [];
const brokers: Broker[] = [];

beforeAll(async () => {
  nats = await startTestNats();
});
afterAll(() => nats.stop());
beforeEach(async () => {
  await nats.kill();
  nats.wipe();
  await nats.start();
  broker = await link("first");
  await ensureStreams(broker);
});
afterEach(async () => {
  for (const one of running.splice(0)) await one.stop();
  for (const one of brokers.splice(0)) await one.close();
});

async function link(name: string): Promise<Broker> {
  const one = connectBroker({ url: nats.url, name, spread: 200 });
  brokers.push(one);
  await one.connected();
  return one;
}
async function publish(from: number, to: number): Promise<void> {
  const numbers = Array.from({ length: to - from + 1 }, (_, at) => from + at);
  // Few under one subject: older ones of one node are pushed out.
  await Promise.all(numbers.map((n) => broker.js.publish(`mesh.events.n${n}.report`, String(n))));
}
function consume(
  options: Partial<ConsumeOptions> & { on?: Broker; gate?: (batch: number[]) => Promise<void> } = {},
) {
  const seen: number[] = [];
  const sizes: number[] = [];
  const errors: unknown[] = [];
  const positions: Position[] = [];
  const { on = broker, gate, ...rest } = options;
  const consumption = consumeStream(
    on,
    { stream: "EVENTS", from: null, epoch: 1, onError: (error) => void errors.push(error), ...rest },
    async (batch, position) => {
      const numbers = batch.map((one) => Number(Buffer.from(one.data).toString()));
      await gate?.(numbers);
      seen.push(...numbers);
      sizes.push(batch.length);
      positions.push(position);
    },
  );
  running.push(consumption);
  return { consumption, seen, sizes, errors, positions };
}
const upTo = (n: number) => Array.from({ length: n }, (_, at) => at + 1);
const sorted = (numbers: number[]) => [...numbers].sort((a, b) => a - b);

it("everything is given once, in batches of up to 256, and where it stands is known", async () => {
  await publish(1, 1_000);
  const { seen, sizes, positions, consumption } = consume();
  await eventually(() => expect(seen).toHaveLength(1_000));
  expect(sorted(seen)).toEqual(upTo(1_000));
  expect(Math.max(...sizes)).toBe(256);
  expect(positions.at(-1)).toMatchObject({ stream: "EVENTS", sequence: 1_000 });
  await publish(1_001, 1_001);
  await eventually(() => expect(seen).toHaveLength(1_001));
  await eventually(() => consumption.live && consumption.pending === 0);
});

it("a later start goes on after the position that was saved", async () => {
  await publish(1, 10);
  const first = consume();
  await eventually(() => expect(first.seen).toHaveLength(10));
  await first.consumption.stop();
  await publish(11, 15);
  const second = consume({ from: first.positions.at(-1)!, epoch: 2 });
  await eventually(() => expect(sorted(second.seen)).toEqual([11, 12, 13, 14, 15]));
});

it("a batch that throws comes again, later and later, and loses nothing behind it", async () => {
  await publish(1, 5);
  let tries = 0;
  const { seen, errors } = consume({
    gate: async () => {
      if (++tries <= 2) throw new Error("the store is away");
    },
  });
  await eventually(() => expect(sorted(seen)).toEqual(upTo(5)));
  expect(errors).toHaveLength(2);
});

it("one message that always throws stops only what is behind it, without a busy loop", async () => {
  await publish(1, 1);
  await publish(2, 2);
  await publish(3, 3);
  const { seen, errors } = consume({
    gate: async (batch) => {
      if (batch.includes(3)) throw new Error("poison");
    },
  });
  await eventually(() => expect(seen).toEqual([1, 2]));
  await eventually(() => errors.length >= 4);
  expect(errors.length).toBeLessThan(12);
});

it("kill -9 of the broker loses nothing and repeats nothing that was folded", async () => {
  const { seen, consumption } = consume();
  await publish(1, 300);
  await eventually(() => expect(seen).toHaveLength(300));
  await nats.kill();
  await nats.start();
  await broker.connected();
  await publish(301, 600);
  const next = consume({ from: consumption.position, epoch: 1 });
  // Whichever of the two goes on: the first one if it was not silent too long, else its successor.
  await consumption.stop();
  await eventually(() => expect(new Set([...seen, ...next.seen]).size).toBe(600));
  expect(sorted(seen)).toEqual(upTo(seen.length));
});

it("a short outage of the broker is passed over by the same consumer", async () => {
  const { seen, consumption, errors } = consume();
  await publish(1, 50);
  await eventually(() => expect(seen).toHaveLength(50));
  const { since } = broker.status;
  await broker.connection.reconnect();
  await eventually(() => broker.status.connected && broker.status.since !== since);
  await publish(51, 100);
  await eventually(() => expect(sorted(seen)).toEqual(upTo(100)));
  expect(errors).toEqual([]);
  expect(consumption.live).toBe(true);
});

it("after the store was wiped it starts with the first message of the new stream", async () => {
  const ended = new AbortController();
  keepStreams(broker, { signal: ended.signal, every: 100, onState: () => {} });
  const { seen, consumption, positions } = consume();
  await publish(1, 20);
  await eventually(() => expect(seen).toHaveLength(20));
  const before = positions.at(-1)!;
  await nats.kill();
  nats.wipe();
  await nats.start();
  await broker.connected();
  await eventually(async () => (await broker.manager()).streams.info("EVENTS").then(Boolean));
  await publish(21, 25);
  const outcome = await Promise.race([
    consumption.ended,
    eventually(() => seen.length === 25).then(() => null),
  ]);
  if (outcome === "silent") {
    const next = consume({ from: before, epoch: 2 });
    await eventually(() => expect(sorted(next.seen)).toEqual([21, 22, 23, 24, 25]));
    expect(next.positions.at(-1)?.created).not.toBe(before.created);
  } else {
    expect(sorted(seen)).toEqual(upTo(25));
    expect(positions.at(-1)?.created).not.toBe(before.created);
  }
  ended.abort();
});

it("a higher epoch takes the consumer over; the holder before ends as taken over and folds no more", async () => {
  const second = await link("second");
  const first = consume();
  await publish(1, 10);
  await eventually(() => expect(first.seen).toHaveLength(10));
  const next = consume({ on: second, from: first.consumption.position, epoch: 2 });
  expect(await first.consumption.ended).toBe("taken-over");
  await publish(11, 20);
  await eventually(() => expect(sorted(next.seen)).toEqual(upTo(20).slice(10)));
  expect(first.seen).toHaveLength(10);
  // The old epoch cannot come back.
  const late = consume({ epoch: 1 });
  expect(await late.consumption.ended).toBe("taken-over");
});

it("of many that claim at once exactly the highest epoch consumes", async () => {
  const others = await Promise.all([1, 2, 3, 4].map((n) => link(`other-${n}`)));
  const all = others.map((on, at) => consume({ on, epoch: at + 1 }));
  await Promise.all(
    all.slice(0, 3).map(async (one) => expect(await one.consumption.ended).toBe("taken-over")),
  );
  await publish(1, 5);
  await eventually(() => expect(sorted(all[3]!.seen)).toEqual(upTo(5)));
});

it("a broker that is paused makes the holder end as silent", async () => {
  const { consumption, seen } = consume();
  await publish(1, 1);
  await eventually(() => expect(seen).toEqual([1]));
  nats.pause();
  try {
    expect(await consumption.ended).toBe("silent");
  } finally {
    nats.resume();
  }
});

it("a batch under way when it is stopped is finished before stop resolves", async () => {
  await publish(1, 3);
  let begun = () => {};
  const started = new Promise<void>((resolve) => (begun = resolve));
  let release = () => {};
  const hold = new Promise<void>((resolve) => (release = resolve));
  const { consumption, seen } = consume({
    gate: async () => {
      begun();
      await hold;
    },
  });
  await started;
  const stopped = consumption.stop();
  release();
  await stopped;
  expect(seen.length).toBeGreaterThan(0);
  expect(await consumption.ended).toBe("stopped");
});
