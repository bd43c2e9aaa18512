import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { OnceFailed, ScheduleInvalid, SupervisorClosed } from "../../../src/host/supervision/errors.ts";
import type { ProcessSpec } from "../../../src/host/supervision/types.ts";
import { eventually } from "../../support/eventually.ts";
import { aHost, aProcess, linesIn, program } from "../../support/supervision.ts";

let host: ReturnType<typeof aHost>;
beforeEach(() => {
  host = aHost();
});
afterEach(() => host.end());

const runs = () => linesIn(join(host.dir, "runs")).length;
const once = (seconds: string, code: string, more: Partial<ProcessSpec> = {}) =>
  aProcess({ command: [program("once.sh"), join(host.dir, "runs"), seconds, code], run: "once", ...more });

describe("a run-once", () => {
  it("is done once per digest, also for a new host, and again when asked for", async () => {
    const supervisor = await host.start();
    const spec = once("0", "0");
    expect(await supervisor.ensure(spec)).toEqual({ changed: true });
    expect(supervisor.status(spec.id)).toMatchObject({ state: "exited", exit: "0", proof: "proven" });
    expect(await supervisor.ensure(spec)).toEqual({ changed: false });
    const next = await host.restart();
    expect(next.differs(spec)).toBe("same");
    expect(await next.ensure(spec)).toEqual({ changed: false });
    expect(runs()).toBe(1);
    await next.restart(spec.id);
    await eventually(() => next.status(spec.id)?.proof === "proven");
    await next.ensure({ ...spec, digest: "2" });
    expect(runs()).toBe(3);
  });

  it("that fails throws its exit and last line, and every further ensure is one more try", async () => {
    const supervisor = await host.start();
    const spec = once("0", "4");
    await expect(supervisor.ensure(spec)).rejects.toThrow(/exit 4; last output: done with 4/);
    expect(supervisor.status(spec.id)).toMatchObject({ state: "exited", exit: "4", proof: "failed" });
    expect(supervisor.differs(spec)).toBe("differs");
    await expect(supervisor.ensure(spec)).rejects.toBeInstanceOf(OnceFailed);
    expect(runs()).toBe(2);
  });

  it("that hangs holds up neither a close nor a caller that gives up; the next host waits for the same run", async () => {
    const supervisor = await host.start();
    const spec = once("1", "0");
    const impatient = new AbortController();
    const waiting = supervisor.ensure(spec, impatient.signal);
    await eventually(() => runs() === 1);
    impatient.abort();
    await expect(waiting).rejects.toBeInstanceOf(SupervisorClosed);
    const again = supervisor.ensure(spec);
    again.catch(() => undefined);
    await eventually(() => supervisor.status(spec.id)?.state === "running");
    const next = await host.restart();
    await expect(again).rejects.toBeInstanceOf(SupervisorClosed);
    expect(await next.ensure(spec)).toEqual({ changed: true });
    expect(runs()).toBe(1);
  });

  it("that ended while the host was away counts as done", async () => {
    const supervisor = await host.start();
    const spec = once("0.3", "0");
    const waiting = supervisor.ensure(spec);
    waiting.catch(() => undefined);
    await eventually(() => runs() === 1);
    await supervisor.close();
    await eventually(() => linesIn(supervisor.logFile(spec.id)).length === 1);
    const next = await host.start();
    expect(await next.ensure(spec)).toEqual({ changed: false });
    expect(runs()).toBe(1);
  });
});

describe("a scheduled run-once", () => {
  it("is proven as soon as it is scheduled, and is not run before its time", async () => {
    const supervisor = await host.start();
    const spec = once("0", "0", { schedule: "0 0 1 1 *" });
    expect(await supervisor.ensure(spec)).toEqual({ changed: true });
    expect(await supervisor.ensure(spec)).toEqual({ changed: false });
    expect(supervisor.status(spec.id)).toMatchObject({ state: "stopped", proof: "proven" });
    expect(runs()).toBe(0);
  });

  it("runs when it comes up, does not overlap, and shows each run's exit", async () => {
    // A clock that is two seconds before the minute, and whose minutes are as long as ours.
    const ahead = 58_000 - (Date.now() % 60_000);
    const clock = {
      now: () => Date.now() + ahead,
      monotonic: () => performance.now(),
      sleep: (ms: number, signal?: AbortSignal) => delay(ms, undefined, signal ? { signal } : {}),
    };
    const supervisor = await host.start({ clock });
    const spec = once("0", "5", { schedule: "* * * * *" });
    await supervisor.ensure(spec);
    await eventually(() => supervisor.status(spec.id)?.exit === "5");
    expect(supervisor.status(spec.id)).toMatchObject({ state: "exited", proof: "proven" });
    expect(supervisor.status(spec.id)?.error).toMatch(/exit 5/);
    expect(host.kinds()).toEqual(["started", "exit", "failed"]);
    const next = await host.restart();
    expect(next.status(spec.id)).toMatchObject({ exit: "5" });
    expect(runs()).toBe(1);
  });

  it("with a line that cannot be is refused", async () => {
    const supervisor = await host.start();
    await expect(supervisor.ensure(once("0", "0", { schedule: "0 0 31 2 *" }))).rejects.toBeInstanceOf(
      ScheduleInvalid,
    );
  });
});
