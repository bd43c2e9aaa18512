import { existsSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { afterEach, beforeEach, expect, test } from "vitest";
import { eventually } from "../../support/eventually.ts";
import { aDeclarationOf, aFile, aService, hostProgram } from "../../support/host.ts";

let host: Awaited<ReturnType<typeof hostProgram>>;
beforeEach(async () => {
  host = await hostProgram();
});
afterEach(() => host.end());

test("with nobody to ask, a host keeps its last declaration true: drift is repaired, a killed service comes back", async () => {
  host.apply(
    aDeclarationOf([aFile("web.conf", "/etc/web", "w"), aService("web.server", ["sleep", "72000"])]),
  );
  const run = host.run();
  await eventually(() => host.status().outcome === "applied");
  writeFileSync(host.real("/etc/web"), "by hand");
  await eventually(() => expect(readFileSync(host.real("/etc/web"), "utf8")).toBe("w"));
  rmSync(host.real("/etc/web"));
  await eventually(() => existsSync(host.real("/etc/web")));
  const server = () => host.status().resources.find((r: { id: string }) => r.id === "web.server").process;
  const { pid } = server();
  process.kill(pid, "SIGKILL");
  await eventually(() => expect(server()).toMatchObject({ state: "running", restarts: 1 }));
  expect(run.log()).toContain('"kind":"drift"');
  const again = server().pid;
  run.child.kill("SIGTERM");
  expect(await run.ended).toEqual({ code: 0, signal: null });
  expect(process.kill(again, 0)).toBe(true);
});

test("a host that is killed and started again adopts what runs, and writes nothing where nothing differs", async () => {
  host.apply(
    aDeclarationOf([aFile("web.conf", "/etc/web", "w"), aService("web.server", ["sleep", "72001"])]),
  );
  const first = host.run();
  await eventually(() => host.status().outcome === "applied");
  const { pid } = host.status().resources[1].process;
  const written = statSync(host.real("/etc/web")).ctimeMs;
  first.child.kill("SIGKILL");
  await first.ended;
  host.run();
  await eventually(() => host.status().outcome === "applied" && host.status().pid !== null);
  expect(host.status().resources[1].process.pid).toBe(pid);
  expect(statSync(host.real("/etc/web")).ctimeMs).toBe(written);
});

test("SIGTERM ends a host at once in the middle of a run-once, which goes on", async () => {
  const slow = aService("web.slow", ["sleep", "72002"], { run: "once" });
  host.apply(aDeclarationOf([aFile("web.conf", "/etc/web", "w")]));
  writeFileSync(
    `${host.stateDir}/declaration.json`,
    JSON.stringify(aDeclarationOf([aFile("web.conf", "/etc/web", "w"), slow], { sequence: 2 })),
  );
  const run = host.run();
  const slowly = () => host.status().resources.find((r: { id: string }) => r.id === "web.slow")?.process;
  await eventually(() => expect(slowly()).toMatchObject({ state: "running" }));
  const { pid } = slowly();
  run.child.kill("SIGTERM");
  expect(await run.ended).toEqual({ code: 0, signal: null });
  expect(process.kill(pid, 0)).toBe(true);
});

test("observe mode reports every difference and writes nothing", async () => {
  host.apply(aDeclarationOf([aFile("web.conf", "/etc/web", "w")]));
  writeFileSync(host.real("/etc/web"), "by hand");
  const declaration = aDeclarationOf(
    [aFile("web.conf", "/etc/web", "w"), aFile("web.new", "/etc/new", "n")],
    {
      sequence: 2,
      body: { mode: "observe" },
    },
  );
  writeFileSync(`${host.stateDir}/declaration.json`, JSON.stringify(declaration));
  host.run();
  await eventually(() => expect(host.status().differences).toHaveLength(2));
  expect(host.status()).toMatchObject({
    outcome: "observed",
    error: null,
    resources: [
      { id: "web.conf", state: "skipped", note: "only observed: content" },
      { id: "web.new", state: "skipped", note: "only observed: /etc/new is absent" },
    ],
  });
  expect(readFileSync(host.real("/etc/web"), "utf8")).toBe("by hand");
  expect(existsSync(host.real("/etc/new"))).toBe(false);
});

test("apply exits 1 as long as a process that it started does not hold", async () => {
  const declaration = aDeclarationOf([aService("bad.server", ["/no/such/program"])]);
  expect(host.apply(declaration)).toMatchObject({ code: 1 });
  const again = host.apply(declaration);
  expect(again).toMatchObject({ code: 1 });
  expect(again.err).toMatch(/failed {3}bad\.server: /);
});

test("a service that cannot be started is reported with its cause while the rest is applied", async () => {
  host.apply(
    aDeclarationOf([aService("bad.server", ["/no/such/program"]), aFile("web.conf", "/etc/web", "w")]),
  );
  host.run();
  await eventually(() => expect(host.status().outcome).toBe("failed"), { within: 20_000 });
  const bad = host.status().resources.find((r: { id: string }) => r.id === "bad.server");
  expect(bad.state).toBe("failed");
  expect(existsSync(host.real("/etc/web"))).toBe(true);
});
