import { type ChildProcess, spawn } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { systemProc } from "../../../src/host/supervision/proc.ts";
import type { ProcessRecord } from "../../../src/host/supervision/record.ts";
import type { ProcessSpec } from "../../../src/host/supervision/types.ts";
import { eventually } from "../../support/eventually.ts";
import {
  aHost,
  aProcess,
  isRoot,
  killableHost,
  linesIn,
  lives,
  program,
  textOf,
} from "../../support/supervision.ts";

let host: ReturnType<typeof aHost>;
let others: ChildProcess[];
beforeEach(() => {
  host = aHost();
  others = [];
});
afterEach(async () => {
  for (const other of others) other.kill("SIGKILL");
  await host.end();
});

const file = (name: string) => join(host.dir, name);
const recordFile = (spec: ProcessSpec) => join(host.dir, "state/processes", spec.id, "record.json");
const service = () => aProcess({ command: [program("appends.sh"), file("starts")] });

async function hostProgram(fault: string, spec: ProcessSpec | null, wait = true): Promise<ChildProcess> {
  const child = await killableHost(file("state"), fault, spec, { wait });
  others.push(child);
  return child;
}

async function kill(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const gone = new Promise((done) => child.once("exit", done));
  child.kill("SIGKILL");
  await gone;
}

function changeRecord(spec: ProcessSpec, change: (record: ProcessRecord) => void): void {
  const record = JSON.parse(readFileSync(recordFile(spec), "utf8"));
  change(record);
  writeFileSync(recordFile(spec), JSON.stringify(record));
}

/** Copies that run now: by what they wrote down about themselves. */
const copies = () => linesIn(file("starts")).map(Number).filter(lives);

describe("a host that was killed", () => {
  it("PRC-3: its next one adopts the same pid, one copy runs, and a later stop works", async () => {
    const spec = service();
    await kill(await hostProgram("", spec));
    const [pid] = (await eventually(() => (copies().length === 1 ? copies() : null))) as number[];
    const supervisor = await host.start();
    expect(supervisor.status(spec.id)).toMatchObject({ state: "running", pid, restarts: 0 });
    expect(await supervisor.ensure(spec)).toEqual({ changed: false });
    const changed = { ...spec, digest: "2" };
    await supervisor.ensure(changed);
    await eventually(() => copies().length === 1 && copies()[0] !== pid);
    await supervisor.remove(spec.id);
    expect(copies()).toEqual([]);
  });

  it("PRC-3: an exit meanwhile is noticed and restarted once, with the count kept", async () => {
    const spec = service();
    const first = await hostProgram("", spec);
    const [a] = (await eventually(() => (copies().length === 1 ? copies() : null))) as number[];
    process.kill(a!, "SIGKILL");
    const [b] = (await eventually(() =>
      copies().length === 1 && copies()[0] !== a ? copies() : null,
    )) as number[];
    await eventually(() => JSON.parse(textOf(recordFile(spec))).run?.main?.pid === b);
    await kill(first);
    process.kill(b!, "SIGKILL");
    await eventually(() => !lives(b!));
    const supervisor = await host.start();
    await eventually(() => copies().length === 1);
    expect(linesIn(file("starts"))).toHaveLength(3);
    expect(supervisor.status(spec.id)).toMatchObject({ restarts: 2, exit: "137 (SIGKILL)" });
  });

  it.each(["supervision:intent", "supervision:spawned"])(
    "between intent and record (%s) leads to exactly one copy",
    async (point) => {
      const spec = service();
      await hostProgram(point, spec);
      const supervisor = await host.start();
      await supervisor.ensure(spec);
      await eventually(() => supervisor.status(spec.id)?.proof === "proven");
      expect(copies()).toEqual([supervisor.status(spec.id)?.pid]);
      expect(linesIn(file("starts"))).toHaveLength(1);
    },
  );

  it("while it removed a process does not start it again, and the next remove ends it", async () => {
    const spec = service();
    await kill(await hostProgram("", spec));
    await eventually(() => copies().length === 1);
    const supervisor = await host.start();
    changeRecord(spec, (record) => Object.assign(record, { removing: true }));
    await supervisor.close();
    const next = await host.start();
    expect(next.differs(spec)).toBe("absent");
    await next.remove(spec.id);
    expect(copies()).toEqual([]);
  });
});

describe("hosts that are killed at any moment", () => {
  it("never leave two copies, and the last one runs exactly the version it wants", async () => {
    const seed = Number(process.env.MESH_TEST_SEED ?? Date.now() % 100_000);
    console.log(`seed ${seed} (MESH_TEST_SEED)`);
    let random = seed;
    const next = (below: number) => {
      random = (random * 1_103_515_245 + 12_345) % 2_147_483_648;
      return random % below;
    };
    const spec = service();
    for (let round = 0; round < 6; round++) {
      const wanted = { ...spec, digest: `${next(2)}` };
      const dying = await hostProgram("", wanted, false);
      await delay(200 + next(400));
      await kill(dying);
      expect(copies().length).toBeLessThanOrEqual(1);
      const [pid] = copies();
      if (pid && next(3) === 0) process.kill(pid, "SIGKILL");
    }
    const supervisor = await host.start();
    const last = { ...spec, digest: "last" };
    await supervisor.ensure(last);
    await eventually(() => supervisor.status(spec.id)?.proof === "proven");
    expect(copies()).toEqual([supervisor.status(spec.id)?.pid]);
    expect(supervisor.status(spec.id)?.runningDigest).toBe("last");
  }, 60_000);
});

describe("PRC-1: a record that no longer fits", () => {
  it("never leads to a signal to a stranger; the process is started once", async () => {
    const spec = service();
    await kill(await hostProgram("", spec));
    const [pid] = (await eventually(() => (copies().length === 1 ? copies() : null))) as number[];
    const stranger = spawn("sleep", ["1000"], isRoot ? { uid: 65534, gid: 65534 } : {});
    others.push(stranger);
    process.kill(pid!, "SIGKILL");
    await eventually(() => !lives(pid!));
    changeRecord(spec, ({ run }) => {
      const { main, parent } = run!;
      main!.pid = stranger.pid!;
      parent!.pid = stranger.pid!;
    });
    const supervisor = await host.start();
    await eventually(() => copies().length === 1);
    expect(linesIn(file("starts"))).toHaveLength(2);
    await supervisor.remove(spec.id);
    expect(lives(stranger.pid!)).toBe(true);
  });

  it("after a reboot starts the process once, though the same pid and start time are there again", async () => {
    const spec = service();
    const supervisor = await host.start();
    await supervisor.ensure(spec);
    const before = supervisor.status(spec.id)!.pid!;
    const others = { ...systemProc(), bootId: () => "another-boot", args: () => null };
    const next = await host.restart({ proc: others });
    await eventually(() => next.status(spec.id)?.state === "running");
    expect(linesIn(file("starts"))).toHaveLength(2);
    expect(lives(before)).toBe(true);
    expect(next.status(spec.id)?.exit).toBe("unknown");
    process.kill(before, "SIGKILL");
  });
});

describe("a record that was lost", () => {
  it.each([
    ["empty", (path: string) => truncateSync(path)],
    ["half", (path: string) => truncateSync(path, 200)],
    ["of another shape", (path: string) => writeFileSync(path, '{"format":9}')],
  ])("%s is set aside, and no second copy is started", async (_, spoil) => {
    const spec = service();
    const supervisor = await host.start();
    await supervisor.ensure(spec);
    const { pid } = supervisor.status(spec.id)!;
    await supervisor.close();
    spoil(recordFile(spec));
    const next = await host.start();
    expect(host.kinds()).toContain("state-set-aside");
    await next.ensure(spec);
    await eventually(() => next.status(spec.id)?.proof === "proven");
    expect(next.status(spec.id)?.pid).toBe(pid);
    expect(copies()).toEqual([pid]);
    expect(readdirSync(join(host.dir, "state/processes", spec.id)).join()).toMatch(/record\.torn-/);
  });

  it("with its folder is found by its parent, and ensure of the same version takes it over", async () => {
    const spec = service();
    const supervisor = await host.start();
    await supervisor.ensure(spec);
    const { pid } = supervisor.status(spec.id)!;
    await supervisor.close();
    rmSync(join(host.dir, "state/processes"), { recursive: true });
    mkdirSync(join(host.dir, "state/processes"));
    const next = await host.start();
    expect(next.status(spec.id)).toMatchObject({ state: "unknown", pid });
    expect(next.differs(spec)).toBe("differs");
    await next.ensure(spec);
    await eventually(() => next.status(spec.id)?.proof === "proven");
    expect(copies()).toEqual([pid]);
  });
});
