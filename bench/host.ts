import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, realpathSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { type Machine, openMachine } from "../src/host/machine.ts";
import { placeAt } from "../src/host/place.ts";
import { faultAt } from "../src/io/faults.ts";
import type { HostPlace } from "../src/resources/driver.ts";
import { aDeclarationOf, aFile, aService, aUser } from "../test/support/host.ts";
import { scale, scaled } from "./config.ts";
import { childCpu } from "./support/process.ts";
import { emit, median } from "./support/row.ts";

const ACCOUNTS = 10;
const PROCESSES = 10;
const PASSES = scale < 1 ? 20 : 60;
const PASS_MS = 100;

/** Accounts that are there, as they are: the host looks at them and finds nothing to do. */
function existingAccounts(): string[] {
  return execFileSync("getent", ["passwd"], { encoding: "utf8" })
    .split("\n")
    .flatMap((line) => (line === "" ? [] : [line.split(":")[0] as string]))
    .slice(0, ACCOUNTS);
}

const environment = {
  broker: undefined,
  brokerFile: undefined,
  context: undefined,
  log: "error",
  fault: undefined,
  path: process.env.PATH ?? "",
  lang: undefined,
};

/** The host's own loop in this process, over a folder of its own; as root it owns and looks up accounts as on a real machine. */
async function aHost(files: number) {
  const root = realpathSync(mkdtempSync(join(tmpdir(), "mesh-bench-")));
  const below = placeAt(root, true);
  const place: HostPlace = { ...below, real: process.getuid?.() === 0 };
  const machine = await openMachine(place, environment, faultAt(undefined as never), {
    onEvent: () => undefined,
    onAccount: () => undefined,
    onError: (error) => process.stderr.write(`${String(error)}\n`),
  });
  const marks = Array.from({ length: PROCESSES }, (_, i) => join(root, `mark-${i}`));
  const resources = [
    ...existingAccounts().map((name) => aUser(`base.${name}`, name)),
    ...Array.from({ length: files }, (_, i) =>
      aFile(`base.file-${i}`, `/etc/base/${i % 20}/${i}.conf`, `line ${i}\n`.repeat(100)),
    ),
    ...marks.map((mark, i) =>
      aService(`base.service-${i}`, ["/bin/sh", "-c", `echo $$ >>${mark}; exec sleep 100000`], {
        restart: { first: 1_000, max: 60_000, resetAfter: 500, rollbackAfter: 3, haltAfter: 5 },
      }),
    ),
  ];
  const host = { check: 600_000, reconcile: 600_000, heartbeat: 30_000 };
  const declaration = aDeclarationOf(resources, { body: { host } });
  const ended = new AbortController();
  machine.loop.submit(declaration);
  const running = machine.loop.run(ended.signal);
  for (let i = 0; machine.loop.account().outcome !== "applied"; i++) {
    if (i > 600) throw new Error(JSON.stringify(machine.loop.account()).slice(0, 2_000));
    await delay(100);
  }
  return {
    root,
    machine,
    marks,
    paths: Array.from({ length: files }, (_, i) => join(root, `etc/base/${i % 20}/${i}.conf`)),
    async end() {
      for (const { id } of resources.filter(({ type }) => type === "process"))
        await machine.supervisor.remove(id);
      ended.abort();
      await running;
      await machine.close();
      rmSync(root, { recursive: true, force: true });
    },
  };
}

interface Used {
  own: number;
  children: number;
}

async function over(passes: number, each: () => unknown): Promise<Used> {
  const from = process.cpuUsage();
  const children = childCpu();
  for (let i = 0; i < passes; i++) {
    await each();
    await delay(PASS_MS);
  }
  const used = process.cpuUsage(from);
  return {
    own: (used.user + used.system) / 1_000 / passes,
    children: (childCpu() - children) / passes,
  };
}

/** CPU of a full pass that finds nothing to do, less what the same time costs without one. */
async function nothingToDo(files: number, reach: boolean): Promise<void> {
  const host = await aHost(files);
  const { machine, paths } = host;
  try {
    await over(10, () => machine.loop.poke());
    const idle = await over(PASSES / 2, () => undefined);
    const looked = await over(PASSES, () => machine.loop.poke());
    const list = join(host.root, "list");
    execFileSync("sh", ["-c", 'printf "%s\\0" "$@" >"$0"', list, ...paths]);
    const tools = await over(PASSES, () =>
      execFileSync("sh", [
        "-c",
        `xargs -0 stat -c %a%U%G <${list} >/dev/null; xargs -0 sha256sum <${list} >/dev/null`,
      ]),
    );
    emit({
      row: `host with nothing to do: ${files} files, ${ACCOUNTS} accounts, ${PROCESSES} processes`,
      family: "host with nothing to do",
      size: files,
      value: looked.own - idle.own + looked.children - idle.children,
      unit: "ms CPU",
      limit: { what: "stat and sha256sum of the same files", value: tools.children - idle.children },
      ...(reach ? { reach: { value: 20, of: "value" as const } } : {}),
      note: `of it ${(looked.children - idle.children).toFixed(1)} ms in getent`,
    });
    if (reach) await restarts(host);
  } finally {
    await host.end();
  }
}

async function restarts(host: { marks: string[]; machine: Machine }): Promise<void> {
  const took: number[] = [];
  const limit: number[] = [];
  for (const mark of host.marks) {
    const pids = () => readFileSync(mark, "utf8").trim().split("\n");
    const size = statSync(mark).size;
    const from = performance.now();
    process.kill(Number(pids().at(-1)), "SIGKILL");
    while (statSync(mark).size === size) {
      if (performance.now() - from > 20_000) throw new Error("a killed process was not started again");
      await delay(1);
    }
    took.push(performance.now() - from);
    const spawned = performance.now();
    execFileSync("/bin/sh", ["-c", `echo $$ >>${mark}.limit`]);
    limit.push(performance.now() - spawned);
  }
  emit({
    row: "a killed process: to the first step of the new one",
    value: median(took),
    unit: "ms",
    limit: { what: "sh started and ended by spawnSync", value: median(limit) },
    reach: { value: 50, of: "value" },
    note: `at most ${Math.max(...took).toFixed(0)} ms of ${took.length}`,
  });
}

await nothingToDo(scaled(48), false);
await nothingToDo(scaled(480), true);
