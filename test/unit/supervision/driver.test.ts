import { describe, expect, it } from "vitest";
import type { ProcessSpec, Supervisor } from "../../../src/host/supervision/types.ts";
import type { HostPlace } from "../../../src/resources/driver.ts";
import { createProcessDriver, renderProcess } from "../../../src/resources/process/driver.ts";
import type { DeclaredProcess } from "../../../src/resources/process/schema.ts";

const place = (root: string): HostPlace => ({
  root,
  real: root === "/",
  invoker: { uid: 1000, gid: 1000, name: "me" },
  realPath: (declared) => (root === "/" ? declared : root + declared),
  stateDir: `${root}/var/lib/mesh-host`,
});

const declared = (change: Partial<DeclaredProcess> = {}): DeclaredProcess => ({
  type: "process",
  id: "web.server",
  module: "web",
  requires: [],
  takes: [],
  digest: "d",
  name: "web",
  command: ["/usr/bin/web", ["--config=", { path: "/etc/web.conf" }]],
  env: { TEXT: "/etc/web.conf", STATE: [{ path: "/var/lib/web" }] },
  envFrom: ["/etc/web.env"],
  user: "web",
  cwd: null,
  run: "service",
  schedule: null,
  restartOn: [],
  reloadOn: [],
  reload: null,
  check: { exec: ["test", "-f", [{ path: "/run/web.pid" }]], timeout: 1_000 },
  minUp: 10_000,
  restart: { first: 1, max: 2, resetAfter: 3, rollbackAfter: 4, haltAfter: 5 },
  stop: { signal: "SIGTERM", grace: 1 },
  limits: { memory: null, cpu: null },
  ...change,
});

describe("a declared process on this machine", () => {
  it("under another root has its references mapped, its text left alone, and the invoker as its account", () => {
    expect(renderProcess(declared(), place("/r"), 5_000)).toMatchObject({
      command: ["/usr/bin/web", "--config=/r/etc/web.conf"],
      env: { TEXT: "/etc/web.conf", STATE: "/r/var/lib/web" },
      envFiles: ["/r/etc/web.env"],
      user: null,
      cwd: "/r",
      check: { exec: ["test", "-f", "/r/run/web.pid"], timeout: 1_000 },
      checkEvery: 5_000,
    });
  });

  it("under / is as it is declared", () => {
    const spec = renderProcess(declared({ cwd: "/srv" }), place("/"), 5_000);
    expect(spec).toMatchObject({ user: "web", cwd: "/srv", envFiles: ["/etc/web.env"] });
  });

  it.each([
    ["/srv/web", "/r/srv/web"],
    ["/", "/r"],
    [[{ path: "/var/lib/web" }, "/sub"], "/r/var/lib/web/sub"],
  ])("maps the cwd %j", (cwd, real) => {
    expect(renderProcess(declared({ cwd }), place("/r"), 1).cwd).toBe(real);
  });

  it("is reloaded, not restarted, when only what it reloads on has changed", async () => {
    const calls: string[] = [];
    const supervisor = {
      differs: () => "same",
      ensure: async (spec: ProcessSpec) => {
        calls.push(`ensure ${spec.digest}`);
        return { changed: false };
      },
      reload: async (id: string) => {
        calls.push(`reload ${id}`);
      },
    } as unknown as Supervisor;
    const driver = createProcessDriver({ place: place("/"), supervisor, checkEvery: 1 });
    const before = { digest: "d", reloadOn: { "web.config": "1" } };
    const now = declared({ reloadOn: [{ id: "web.config", digest: "2" }] });
    const observation = (await driver.observe([now], new Map([[now.id, before]]))).get(now.id);
    expect(observation).toMatchObject({ state: "differs", fields: ["reloadOn"] });
    if (!observation || observation instanceof Error) throw new Error("not observed");
    const applied = await driver.apply(now, before, observation);
    expect(calls).toEqual(["ensure d", "reload web.server"]);
    expect(applied).toMatchObject({ changed: true, record: { reloadOn: { "web.config": "2" } } });
    const after = await driver.observe([now], new Map([[now.id, applied.record]]));
    expect(after.get(now.id)).toMatchObject({ state: "same" });
  });
});
