import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { MeshError } from "../../../src/errors.ts";
import { runCall } from "../../../src/inventory/calls.ts";
import { takeSeat } from "../../../src/inventory/controllers.ts";
import { BusyRetry, NotActive, withPlanLock } from "../../../src/inventory/plan-lock.ts";
import { CommitUnknown, openStore } from "../../../src/io/postgres.ts";
import { eventually } from "../../support/eventually.ts";
import { anInventory } from "../../support/inventory.ts";
import { ownPostgres } from "../../support/postgres.ts";

/** A promise and what settles it. */
function gate(): { opened: Promise<void>; open(): void } {
  let open = () => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { opened, open };
}

describe("the plan's lock", () => {
  let at: Awaited<ReturnType<typeof anInventory>>;
  beforeAll(async () => {
    at = await anInventory();
    await at.inventory.db.query("CREATE TABLE saved (n int)");
  });
  afterAll(() => at.done());

  const lockOf = (mode: "try" | "wait", lockMs?: number) => ({
    mode,
    epoch: at.epoch,
    ...(lockMs ? { lockMs } : {}),
  });
  const locks = async () =>
    (
      await at.inventory.db.query<{ n: number }>(
        `SELECT count(*) AS n FROM pg_locks WHERE locktype = 'advisory'
         AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`,
      )
    )[0]!.n;
  /** Holds the lock until told; resolves once it has it. */
  const hold = async () => {
    const has = gate();
    const release = gate();
    const held = withPlanLock(at.inventory, lockOf("wait"), async (tx) => {
      const rows = await tx.query<{ pid: number }>("SELECT pg_backend_pid() AS pid");
      await tx.query("INSERT INTO saved VALUES (1)");
      pid = rows[0]!.pid;
      has.open();
      await release.opened;
      return tx.query("SELECT 1");
    });
    held.catch(() => {});
    let pid = 0;
    await has.opened;
    return { held, release, pid };
  };

  test("PLN-2: poll, webhook and command at once, 30 rounds, one throwing half-way: no overlap, no lock left", async () => {
    let inside = 0;
    let overlaps = 0;
    let ran = 0;
    const work = (fails: boolean) => async (tx: { query(text: string): Promise<unknown> }) => {
      inside++;
      ran++;
      if (inside > 1) overlaps++;
      try {
        await tx.query("INSERT INTO saved VALUES (2)");
        await tx.query("SELECT pg_sleep(0.001)");
        if (fails) throw new Error("half-way");
      } finally {
        inside--;
      }
    };
    for (let round = 0; round < 30; round++) {
      const others = Array.from({ length: 10 }, () => at.inventory.db.query("SELECT count(*) FROM saved"));
      const runs = await Promise.allSettled([
        withPlanLock(at.inventory, lockOf("try"), work(round % 3 === 0)),
        withPlanLock(at.inventory, lockOf("wait"), work(round % 3 === 1)),
        withPlanLock(at.inventory, lockOf("wait"), work(round % 3 === 2)),
      ]);
      await Promise.all(others);
      for (const run of runs)
        if (run.status === "rejected") expect(run.reason).toMatchObject({ message: "half-way" });
      expect(await locks()).toBe(0);
    }
    expect(overlaps).toBe(0);
    expect(ran).toBeGreaterThanOrEqual(60);
  });

  test("the timer skips while another holds it, the others wait and then say busy", async () => {
    const holder = await hold();
    expect(await withPlanLock(at.inventory, lockOf("try"), async () => "ran")).toBe("skipped");
    await expect(withPlanLock(at.inventory, lockOf("wait", 100), async () => "ran")).rejects.toThrow(
      BusyRetry,
    );
    const waiting = withPlanLock(at.inventory, lockOf("wait"), async () => "ran");
    holder.release.open();
    await holder.held;
    expect(await waiting).toBe("ran");
  });

  test("a holder whose backend is killed loses it, with what it did", async () => {
    const before = await at.inventory.db.query("SELECT count(*) FROM saved");
    const holder = await hold();
    await at.inventory.db.query("SELECT pg_terminate_backend($1)", [holder.pid]);
    expect(await withPlanLock(at.inventory, lockOf("wait"), async () => "ran")).toBe("ran");
    holder.release.open();
    await expect(holder.held).rejects.toBeInstanceOf(MeshError);
    expect(await at.inventory.db.query("SELECT count(*) FROM saved")).toEqual(before);
    expect(await locks()).toBe(0);
  });

  test("a holder that is paused loses it within the idle limit, and what it does later fails", async () => {
    const holder = await hold();
    await eventually(async () =>
      expect(await withPlanLock(at.inventory, lockOf("try"), async () => "ran")).toBe("ran"),
    );
    holder.release.open();
    await expect(holder.held).rejects.toMatchObject({ next: "retry" });
  });

  test("an epoch that is over can change nothing, and a takeover waits for the work under way", async () => {
    const holder = await hold();
    const takeover = takeSeat(at.inventory.lease, "test");
    holder.release.open();
    await holder.held;
    expect(await takeover).toBe(at.epoch + 1);
    await expect(withPlanLock(at.inventory, lockOf("wait"), async () => "ran")).rejects.toThrow(NotActive);
    at.epoch += 1;
    expect(await withPlanLock(at.inventory, lockOf("wait"), async () => "ran")).toBe("ran");
  });

  test("a changing verb asked again with the same id gets the first result, also when both run at once", async () => {
    let runs = 0;
    const call = { id: "call-1", verb: "freeze" };
    const work = async () => ({ n: ++runs, text: "zero \u0000 byte" });
    const [a, b] = await Promise.all([runCall(at.inventory, call, work), runCall(at.inventory, call, work)]);
    const c = await runCall(at.inventory, call, work);
    expect(runs).toBe(1);
    expect([a.n, b.n, c.n]).toEqual([1, 1, 1]);
  });
});

describe("a transaction whose server dies", () => {
  test("it says whether it was saved, or that nobody knows", async () => {
    const server = await ownPostgres();
    const store = openStore(server.url, { applicationName: "test" });
    const limits = { statementMs: 5_000, idleMs: 3_000, lockMs: 3_000 };
    await store.query("CREATE TABLE saved (n int)");
    for (let round = 0; round < 6; round++) {
      const outcome = store
        .transaction(limits, async (tx) => {
          await tx.query("INSERT INTO saved VALUES ($1)", [round]);
          if (round % 2 === 0) setImmediate(() => server.kill());
          else setTimeout(() => server.kill(), 1);
        })
        .then(
          () => "saved",
          (error) =>
            error instanceof CommitUnknown ? "unknown" : error instanceof MeshError ? "lost" : error,
        );
      await eventually(() => expect(() => process.kill(server.pid(), 0)).toThrow());
      await server.start();
      const said = await outcome;
      const rows = await store.query("SELECT 1 FROM saved WHERE n = $1", [round]);
      expect(said).toBeOneOf(rows.length === 1 ? ["saved", "unknown"] : ["lost", "unknown"]);
    }
    await store.close();
    await server.stop();
  });

  test("a session that ends inside COMMIT is not taken for saved", async () => {
    const server = await ownPostgres();
    const store = openStore(server.url, { applicationName: "test" });
    await store.query("CREATE TABLE cuts (n int)");
    await store.query(`CREATE FUNCTION cut() RETURNS trigger LANGUAGE plpgsql AS
      $$ BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NULL; END $$`);
    await store.query(`CREATE CONSTRAINT TRIGGER cut AFTER INSERT ON cuts DEFERRABLE INITIALLY DEFERRED
      FOR EACH ROW EXECUTE FUNCTION cut()`);
    const limits = { statementMs: 5_000, idleMs: 3_000, lockMs: 3_000 };
    const cut = store.transaction(limits, (tx) => tx.query("INSERT INTO cuts VALUES (1)"));
    await expect(cut).rejects.toThrow(CommitUnknown);
    expect(await store.query("SELECT 1 FROM cuts")).toEqual([]);
    await store.close();
    await server.stop();
  });
});
