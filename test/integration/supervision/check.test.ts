import { spawn } from "node:child_process";
import { networkInterfaces } from "node:os";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { RenderedCheck } from "../../../src/host/supervision/types.ts";
import { eventually } from "../../support/eventually.ts";
import { aHost, aProcess, freePort, lives, program } from "../../support/supervision.ts";

let host: ReturnType<typeof aHost>;
let port: number;
beforeEach(async () => {
  host = aHost();
  port = await freePort();
});
afterEach(() => host.end());

const server = (name: string, ...more: string[]) => [
  process.execPath,
  program(name),
  "127.0.0.1",
  `${port}`,
  ...more,
];
const checked = (command: string[], check: RenderedCheck) =>
  aProcess({ command, check, stop: { signal: "SIGTERM", grace: 200 } });

describe("a check", () => {
  it.each([
    ["http", (at: string) => ({ http: `http://${at}/health`, timeout: 1_000 })],
    ["tcp", (at: string) => ({ tcp: at, timeout: 1_000 })],
  ])("by %s proves a service that binds late, and not before", async (_, check) => {
    const supervisor = await host.start();
    const spec = checked(server("server.mjs", "400"), check(`127.0.0.1:${port}`));
    await supervisor.ensure(spec);
    await eventually(() => expect(supervisor.status(spec.id)?.error).toMatch(/ECONNREFUSED/));
    expect(supervisor.status(spec.id)).toMatchObject({ state: "running", proof: "proving" });
    await eventually(() => supervisor.status(spec.id)?.proof === "proven");
    expect(supervisor.status(spec.id)?.error).toBeNull();
  });

  it("does not count an answer of another program at the port", async () => {
    const other = spawn(process.execPath, [program("server.mjs"), "127.0.0.1", `${port}`]);
    await eventually(async () => (await fetch(`http://127.0.0.1:${port}`)).ok);
    const supervisor = await host.start();
    const spec = checked(["sleep", "1000"], { http: `http://127.0.0.1:${port}/`, timeout: 1_000 });
    await supervisor.ensure(spec);
    await eventually(() => expect(supervisor.status(spec.id)?.error).toMatch(/another program answers/));
    expect(supervisor.status(spec.id)?.proof).toBe("proving");
    other.kill("SIGKILL");
  });

  it("does not count another status than 2xx and 3xx", async () => {
    const supervisor = await host.start();
    const spec = checked(server("server.mjs", "0", "503"), {
      http: `http://127.0.0.1:${port}/`,
      timeout: 1_000,
    });
    await supervisor.ensure(spec);
    await eventually(() => expect(supervisor.status(spec.id)?.error).toMatch(/answered 503/));
  });

  it("works at the machine's other addresses, and says of a foreign one that it cannot", async () => {
    const own = Object.values(networkInterfaces())
      .flatMap((list) => list ?? [])
      .find((each) => each.family === "IPv4");
    const supervisor = await host.start();
    const spec = checked([process.execPath, program("server.mjs"), "::", `${port}`], {
      http: `http://${own?.address ?? "127.0.0.2"}:${port}/`,
      timeout: 1_000,
    });
    await supervisor.ensure(spec);
    await eventually(() => supervisor.status(spec.id)?.proof === "proven");
  });

  it("by exec runs as long as it may, and its failure says its last line", async () => {
    const supervisor = await host.start();
    const spec = checked(["sleep", "1000"], { exec: ["sh", "-c", "echo not yet; exit 3"], timeout: 1_000 });
    await supervisor.ensure(spec);
    await eventually(() => expect(supervisor.status(spec.id)?.error).toMatch(/ended with 3: not yet/));
    await supervisor.ensure(checked(["sleep", "1000"], { exec: ["sleep", "1000"], timeout: 50 }));
    await eventually(() => expect(supervisor.status(spec.id)?.error).toMatch(/longer than 50 ms/));
    await supervisor.ensure(checked(["sleep", "1000"], { exec: ["true"], timeout: 1_000 }));
    await eventually(() => supervisor.status(spec.id)?.proof === "proven");
  });

  it("that fails three times in a row restarts a proven service, without counting towards a halt", async () => {
    const supervisor = await host.start();
    const spec = checked(server("flaky-server.mjs"), { http: `http://127.0.0.1:${port}/`, timeout: 1_000 });
    await supervisor.ensure(spec);
    await eventually(() => supervisor.status(spec.id)?.proof === "proven");
    const { pid } = supervisor.status(spec.id)!;
    process.kill(pid!, "SIGUSR2");
    await eventually(
      () => supervisor.status(spec.id)?.proof === "proven" && supervisor.status(spec.id)?.pid !== pid,
    );
    expect(lives(pid!)).toBe(false);
    expect(supervisor.status(spec.id)).toMatchObject({ state: "running", restarts: 1 });
    expect(host.events.some((event) => /3 checks in a row failed.*answered 500/.test(event.detail))).toBe(
      true,
    );
  });

  it("goes on being asked after a new host adopted the process", async () => {
    const supervisor = await host.start();
    const spec = checked(server("server.mjs"), { http: `http://127.0.0.1:${port}/`, timeout: 1_000 });
    await supervisor.ensure(spec);
    const next = await host.restart();
    await eventually(() => next.status(spec.id)?.proof === "proven");
  });
});

describe("reload", () => {
  it("signals the main process where a signal is declared, and restarts it otherwise", async () => {
    const supervisor = await host.start();
    const command = server("flaky-server.mjs");
    const check = { tcp: `127.0.0.1:${port}`, timeout: 1_000 };
    const spec = aProcess({ command, check, reload: { signal: "SIGHUP" } });
    await supervisor.ensure(spec);
    await eventually(() => supervisor.status(spec.id)?.proof === "proven");
    const { pid } = supervisor.status(spec.id)!;
    await supervisor.reload(spec.id);
    expect(supervisor.status(spec.id)?.pid).toBe(pid);
    await eventually(() => host.kinds().includes("reloaded"));
    await supervisor.ensure({ ...spec, reload: null });
    expect(supervisor.status(spec.id)?.pid).toBe(pid);
    await supervisor.reload(spec.id);
    expect(supervisor.status(spec.id)?.pid).not.toBe(pid);
  });
});

describe.runIf(process.getuid?.() === 0)("limits", () => {
  it("are enforced where cgroups are writable, and named where they are not", async () => {
    const supervisor = await host.start();
    const command = [
      process.execPath,
      "-e",
      "const a = []; setInterval(() => a.push(Buffer.alloc(8e6, 1)), 1)",
    ];
    const limits = { memory: 120 * 1024 * 1024, cpu: 0.5 };
    await supervisor.ensure(aProcess({ command, limits }));
    const said = supervisor.limits();
    if (said.some((line) => line.startsWith("limits.memory"))) expect(said.join()).toMatch(/web\.server/);
    else
      await eventually(() => expect(supervisor.status("web.server")?.exit).toMatch(/SIGKILL/), {
        within: 20_000,
      });
    const none = await host.restart({ cgroups: "none" });
    expect(none.limits().join("\n")).toMatch(/limits\.memory is not enforced here .*web\.server/);
  });
});
