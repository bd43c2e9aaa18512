import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type Active, createActive } from "../../../src/controller/active.ts";
import { readControllers, readSeat } from "../../../src/inventory/controllers.ts";
import { type Inventory, openInventory } from "../../../src/inventory/index.ts";
import { systemClock } from "../../../src/io/clock.ts";
import { eventually } from "../../support/eventually.ts";
import { type OwnPostgres, ownPostgres } from "../../support/postgres.ts";

describe("who is active", () => {
  let server: OwnPostgres;
  const opened: Inventory[] = [];
  const actives: Active[] = [];
  beforeEach(async () => {
    server = await ownPostgres();
  });
  afterEach(async () => {
    for (const active of actives.splice(0)) await active.stop();
    for (const inventory of opened.splice(0)) await inventory.close();
    await server.stop();
  });

  async function aController(id: string, inventory?: Inventory, able = () => true) {
    const own = inventory ?? (await openInventory(server.url, { name: id }));
    if (!inventory) opened.push(own);
    const history: string[] = [];
    const active = createActive({
      inventory: own,
      id,
      clock: systemClock,
      able,
      onGain: (epoch) => history.push(`gain ${epoch}`),
      onLose: (why) => history.push(`lose: ${why}`),
    });
    actives.push(active);
    active.start();
    return { active, history, inventory: own };
  }

  test("one of two, and the other takes over after a clean stop, with the next epoch", async () => {
    const a = await aController("a");
    await eventually(() => a.active.role === "active");
    const b = await aController("b");
    await eventually(async () => (await readControllers(a.inventory.db)).length === 2);
    expect(await readControllers(a.inventory.db)).toMatchObject([
      { id: "a", role: "active" },
      { id: "b", role: "standby" },
    ]);
    await a.active.stop();
    await eventually(() => b.active.role === "active", { within: 2_500 });
    expect(b.active.epoch).toBe(2);
    expect(a.history).toEqual(["gain 1"]);
    expect(await readControllers(b.inventory.db)).toMatchObject([{ id: "b", role: "active" }]);
  });

  test("a paused one is taken over, and loses itself when it wakes", async () => {
    // Its renewals hang as those of a stopped process do.
    const inventory = await openInventory(server.url, { name: "a" });
    opened.push(inventory);
    let paused: Promise<void> = Promise.resolve();
    const lease = {
      ...inventory.lease,
      query: (async (text: string, values?: unknown[]) => {
        await paused;
        return inventory.lease.query(text, values);
      }) as typeof inventory.lease.query,
    };
    const a = await aController("a", { ...inventory, lease });
    await eventually(() => a.active.role === "active");
    const b = await aController("b");
    let wake = () => {};
    paused = new Promise((resolve) => {
      wake = resolve;
    });
    await eventually(() => b.active.role === "active", { within: 9_000 });
    expect(a.active.epoch).toBe(1);
    wake();
    await eventually(() => a.active.role === "standby");
    expect(a.history).toEqual(["gain 1", "lose: another controller took over"]);
    expect(await readSeat(b.inventory.db)).toEqual({ epoch: 2, holder: "b" });
  });

  test("a store that dies makes it lose itself at once, and it is active again, in a new epoch, when the store is back", async () => {
    const a = await aController("a");
    await eventually(() => a.active.role === "active");
    server.kill();
    await eventually(() => a.active.role === "standby");
    expect(a.active.reachable).toBe(false);
    await server.start();
    await eventually(() => a.active.role === "active");
    expect(a.history).toEqual(["gain 1", "lose: the store did not answer", "gain 2"]);
  });

  test("LNK-2: one whose broker is away leaves the seat to others, and takes it once when the link is back", async () => {
    let link = true;
    const a = await aController("a", undefined, () => link);
    await eventually(() => a.active.role === "active");
    link = false;
    a.active.lose("the consumer of EVENTS is silent");
    expect(a.active.role).toBe("standby");
    await new Promise((later) => setTimeout(later, 2_500));
    expect(a.active.reachable).toBe(true);
    expect(a.history).toEqual(["gain 1", "lose: the consumer of EVENTS is silent"]);
    link = true;
    await eventually(() => a.active.role === "active");
    expect(a.history.at(-1)).toBe("gain 2");
  });
});
