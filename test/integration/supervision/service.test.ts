import { readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { StopFailed } from "../../../src/host/supervision/errors.ts";
import { follow, tail } from "../../../src/host/supervision/logs.ts";
import { eventually } from "../../support/eventually.ts";
import { aHost, aProcess, linesIn, lives, program, textOf } from "../../support/supervision.ts";

for (const cgroups of ["auto", "none"] as const) {
  describe(`a service, cgroups ${cgroups}`, () => {
    let host: ReturnType<typeof aHost>;
    beforeEach(() => {
      host = aHost({ cgroups });
    });
    afterEach(() => host.end());
    const file = (name: string) => join(host.dir, name);

    it("runs, is proven after minUp, and a second ensure does nothing", async () => {
      const supervisor = await host.start();
      const spec = aProcess({ command: [program("appends.sh"), file("starts")] });
      expect(supervisor.differs(spec)).toBe("absent");
      expect(await supervisor.ensure(spec)).toEqual({ changed: true });
      await eventually(() => supervisor.status(spec.id)?.proof === "proven");
      expect(await supervisor.ensure(spec)).toEqual({ changed: false });
      expect(supervisor.differs(spec)).toBe("same");
      const status = supervisor.status(spec.id)!;
      expect(status).toMatchObject({
        state: "running",
        restarts: 0,
        error: null,
        runningDigest: spec.digest,
      });
      expect(linesIn(file("starts"))).toEqual([`${status.pid}`]);
    });

    it("is restarted after a kill, with the exit and the count shown", async () => {
      const supervisor = await host.start();
      const spec = aProcess({ command: [program("appends.sh"), file("starts")] });
      await supervisor.ensure(spec);
      const first = supervisor.status(spec.id)!.pid!;
      process.kill(first, "SIGKILL");
      await eventually(
        () => linesIn(file("starts")).length === 2 && supervisor.status(spec.id)?.state === "running",
      );
      expect(supervisor.status(spec.id)).toMatchObject({ restarts: 1, exit: "137 (SIGKILL)" });
      await eventually(() => expect(host.kinds()).toEqual(["started", "exit", "started"]));
    });

    it("is ended and started anew when its digest changes, and is gone after remove", async () => {
      const supervisor = await host.start();
      const spec = aProcess({ command: [program("appends.sh"), file("starts")] });
      await supervisor.ensure(spec);
      const first = supervisor.status(spec.id)!.pid!;
      await supervisor.ensure({ ...spec, digest: "2" });
      const second = supervisor.status(spec.id)!.pid!;
      expect(second).not.toBe(first);
      expect(lives(first)).toBe(false);
      await supervisor.remove(spec.id);
      expect(lives(second)).toBe(false);
      expect(supervisor.status(spec.id)).toBeNull();
    });

    it("is killed after its grace when it ignores SIGTERM", async () => {
      const supervisor = await host.start();
      const spec = aProcess({
        command: [program("ignores-term.sh")],
        stop: { signal: "SIGTERM", grace: 100 },
      });
      await supervisor.ensure(spec);
      const pid = supervisor.status(spec.id)!.pid!;
      await eventually(() => textOf(supervisor.logFile(spec.id)).includes("ready"));
      await supervisor.remove(spec.id);
      expect(lives(pid)).toBe(false);
    });

    it("takes a daemon with it that left its session", async () => {
      const supervisor = await host.start();
      const spec = aProcess({ command: [program("double-fork.sh"), file("daemon")] });
      await supervisor.ensure(spec);
      const daemon = await eventually(() => Number(textOf(file("daemon"))));
      await supervisor.remove(spec.id);
      expect(lives(daemon)).toBe(false);
    });

    it("that forks away is reported, and what it left is ended before the next start", async () => {
      const supervisor = await host.start();
      const spec = aProcess({
        command: [program("forks-away.sh"), file("daemon")],
        restart: { first: 20, max: 20, resetAfter: 60_000, rollbackAfter: 2, haltAfter: 1 },
      });
      await supervisor.ensure(spec);
      await eventually(() => supervisor.status(spec.id)?.state === "halted");
      expect(supervisor.status(spec.id)?.error).toMatch(/exit 0 .* leaving 1 process.*foreground/);
      expect(lives(Number(textOf(file("daemon"))))).toBe(false);
    });

    it("that exits at once backs off and halts, with its last lines; `restart` clears that", async () => {
      const supervisor = await host.start();
      const spec = aProcess({
        command: [program("exits-at-once.sh")],
        env: { CODE: "7", REASON: "no database" },
      });
      await supervisor.ensure(spec);
      await eventually(() => supervisor.status(spec.id)?.state === "halted");
      const status = supervisor.status(spec.id)!;
      expect(status).toMatchObject({ proof: "failed", exit: "7", restarts: 4, pid: null });
      expect(status.last.at(-1)).toBe("cannot go on: no database");
      expect(host.kinds().filter((kind) => kind === "started")).toHaveLength(5);
      expect(host.kinds().at(-1)).toBe("halted");
      await supervisor.restart(spec.id);
      expect(supervisor.status(spec.id)?.state).not.toBe("halted");
    });

    it("is rolled back to the version that was proven, and a correct one replaces that", async () => {
      const supervisor = await host.start();
      const good = aProcess({ command: [program("appends.sh"), file("good")] });
      await supervisor.ensure(good);
      await eventually(() => supervisor.status(good.id)?.proof === "proven");
      const bad = aProcess({ command: [program("exits-at-once.sh")] });
      await supervisor.ensure(bad);
      await eventually(() => supervisor.status(good.id)?.state === "rolled-back");
      await eventually(() => supervisor.status(good.id)?.runningDigest === good.digest);
      expect(supervisor.status(good.id)).toMatchObject({ proof: "failed", wantedDigest: bad.digest });
      expect(supervisor.differs(bad)).toBe("same");
      const next = aProcess({ command: [program("appends.sh"), file("next")] });
      await supervisor.ensure(next);
      await eventually(() => supervisor.status(good.id)?.proof === "proven");
      expect(supervisor.status(good.id)).toMatchObject({ state: "running", runningDigest: next.digest });
    });

    it("that is declared back to what a roll back put there goes on without a restart", async () => {
      const supervisor = await host.start();
      const good = aProcess({ command: [program("appends.sh"), file("good")] });
      await supervisor.ensure(good);
      await eventually(() => supervisor.status(good.id)?.proof === "proven");
      await supervisor.ensure(aProcess({ command: [program("exits-at-once.sh")] }));
      await eventually(
        () => supervisor.status(good.id)?.state === "rolled-back" && supervisor.status(good.id)?.pid,
      );
      const { pid } = supervisor.status(good.id)!;
      await supervisor.ensure(good);
      await eventually(() => supervisor.status(good.id)?.proof === "proven");
      expect(supervisor.status(good.id)).toMatchObject({ state: "running", pid });
    });

    it("outlives its host, whose next one adopts it", async () => {
      const supervisor = await host.start();
      const spec = aProcess({ command: [program("appends.sh"), file("starts")] });
      await supervisor.ensure(spec);
      const { pid } = supervisor.status(spec.id)!;
      const next = await host.restart();
      expect(next.status(spec.id)).toMatchObject({ state: "running", pid, restarts: 0 });
      expect(linesIn(file("starts"))).toHaveLength(1);
    });

    it("with a killed parent goes on as the same process, and its end is `unknown`", async () => {
      const supervisor = await host.start();
      const spec = aProcess({ command: [program("appends.sh"), file("starts")] });
      await supervisor.ensure(spec);
      const pid = supervisor.status(spec.id)!.pid!;
      const parent = Number(/\) \S (\d+)/.exec(readFileSync(`/proc/${pid}/stat`, "utf8"))?.[1]);
      process.kill(parent, "SIGKILL");
      await eventually(() => !lives(parent));
      expect(supervisor.status(spec.id)).toMatchObject({ state: "running", pid });
      process.kill(pid, "SIGKILL");
      await eventually(
        () => linesIn(file("starts")).length === 2 && supervisor.status(spec.id)?.state === "running",
      );
      expect(supervisor.status(spec.id)).toMatchObject({ exit: "unknown", restarts: 1 });
    });
  });
}

describe("a start that cannot be", () => {
  let host: ReturnType<typeof aHost>;
  beforeEach(() => {
    host = aHost();
  });
  afterEach(() => host.end());

  it.each([
    [
      "a command that does not exist",
      { command: ["no-such-program"] },
      /no-such-program.* was not found \(ENOENT\)/,
    ],
    ["a path that does not exist", { command: ["/nowhere/x"] }, /\/nowhere\/x.* was not found/],
    ["a file without the bit", { command: ["/etc/passwd"] }, /\/etc\/passwd cannot be executed/],
    ["a missing cwd", { command: ["true"], cwd: "/nowhere" }, /cwd \/nowhere is not a folder \(ENOENT\)/],
    [
      "a missing env file",
      { command: ["true"], envFiles: ["/nowhere/env"] },
      /envFrom \/nowhere\/env: ENOENT/,
    ],
    ["a missing user", { command: ["true"], user: "no-such-user" }, /user no-such-user does not exist/],
  ])("names %s and follows the restart policy", async (_, change, message) => {
    const supervisor = await host.start();
    const spec = aProcess({
      ...change,
      restart: { first: 10, max: 10, resetAfter: 60_000, rollbackAfter: 9, haltAfter: 2 },
    });
    await expect(supervisor.ensure(spec)).rejects.toThrow(message);
    expect(supervisor.status(spec.id)?.error).toMatch(message);
    await eventually(() => supervisor.status(spec.id)?.state === "halted");
    expect(supervisor.status(spec.id)?.error).toMatch(message);
  });
});

describe("output", () => {
  let host: ReturnType<typeof aHost>;
  beforeEach(() => {
    host = aHost({ logBound: 100_000 });
  });
  afterEach(() => host.end());

  it("PLN-4: zero bytes, invalid UTF-8 and escapes are replaced in the last lines", async () => {
    const supervisor = await host.start();
    const spec = aProcess({
      command: [program("prints-bytes.sh")],
      restart: { first: 10, max: 10, resetAfter: 60_000, rollbackAfter: 9, haltAfter: 1 },
    });
    await supervisor.ensure(spec);
    await eventually(() => supervisor.status(spec.id)?.state === "halted");
    expect(supervisor.status(spec.id)?.last).toEqual([
      "before\ufffdafter",
      "\ufffd\ufffd broken",
      "\ufffd[31mred",
    ]);
    expect(tail(supervisor.logFile(spec.id), 2).lines).toEqual(["\ufffd\ufffd broken", "\ufffd[31mred"]);
    expect(host.events.find((event) => event.kind === "exit")?.detail).not.toMatch(/[\u0000-\u001f]/);
  });

  it("of a program that floods it is kept within its bound, and what was dropped is said", async () => {
    const supervisor = await host.start();
    const spec = aProcess({ command: [program("floods.sh")] });
    await supervisor.ensure(spec);
    const log = supervisor.logFile(spec.id);
    await eventually(() => host.events.some((event) => /bytes of output dropped/.test(event.detail)));
    expect(readFileSync(join(dirname(log), "record.json"), "utf8")).toMatch(/"droppedLogBytes":[1-9]/);
    expect(readFileSync(`${log}.1`).length).toBeLessThanOrEqual(100_000);
    await supervisor.remove(spec.id);
  });

  it("is followed by position, whole lines at a time", async () => {
    const log = join(host.dir, "log");
    writeFileSync(log, "one\ntwo\nthr");
    const first = follow(log, 0);
    expect(first).toEqual({ lines: ["one", "two"], position: 8 });
    writeFileSync(log, "ee\n", { flag: "a" });
    expect(follow(log, first.position)).toEqual({ lines: ["three"], position: 14 });
    writeFileSync(log, "new\n");
    expect(follow(log, 14)).toEqual({ lines: ["new"], position: 4 });
    await host.start();
  });
});

describe("StopFailed", () => {
  it("names what is left", () => {
    expect(new StopFailed({ id: "a.b", pids: [7], afterMs: 5000 }).message).toMatch(/a\.b.*pid 7/);
  });
});
