import { execFileSync, spawnSync } from "node:child_process";
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { Declaration } from "../../../src/declaration/schema.ts";
import { assemble } from "../../../src/host/assemble.ts";
import { decide } from "../../../src/host/decide.ts";
import { type Drivers, execute } from "../../../src/host/execute.ts";
import { observe } from "../../../src/host/observe.ts";
import { readOnlySupervisor } from "../../../src/host/readonly.ts";
import { emptyState } from "../../../src/host/state.ts";
import type { HostPlace } from "../../../src/resources/driver.ts";
import { createAccounts, UserDatabaseSilent } from "../../../src/resources/user/accounts.ts";
import { aDeclarationOf, aDirectory, aFile, aGroup, aUser, modeOf } from "../../support/host.ts";

const root = process.getuid?.() === 0;
const NAMES = ["meshzz-a", "meshzz-b", "meshzz-c", "meshzz-data"];
const id = (...args: string[]) => spawnSync("id", args, { encoding: "utf8" });
const exists = (name: string) => id(name).status === 0;

function clear(): void {
  for (const name of NAMES) {
    spawnSync("userdel", ["-f", name]);
    spawnSync("groupdel", [name]);
  }
}

/** A host over the real root "/", whose own folder is elsewhere, so that nothing of a real one is touched. */
function realHost(dir: string) {
  const place: HostPlace = {
    root: "/",
    real: true,
    invoker: { uid: 0, gid: 0, name: "root" },
    realPath: (path) => path,
    stateDir: join(dir, "state"),
  };
  const supervisor = readOnlySupervisor(join(dir, "state/supervision"));
  const live = { checkEvery: () => 1_000, signal: () => undefined };
  const { drivers, accounts, files } = assemble(place, supervisor, () => undefined, live);
  const state = emptyState();
  const events: string[] = [];
  return {
    state,
    events,
    async apply({ body, revision }: Declaration) {
      accounts.forget();
      const steps = decide(
        body,
        state,
        await observe(body, state, drivers as Drivers, supervisor),
        Date.now(),
      );
      return execute(steps, {
        declared: body,
        revision,
        state,
        drivers,
        place,
        now: () => Date.now(),
        save: () => undefined,
        fault: () => undefined,
        interrupted: () => false,
        event: (kind, resource, detail) => void events.push(`${kind} ${resource}: ${detail}`),
        removeFolder: files.removeDirectory,
      });
    },
  };
}

describe.runIf(root)("accounts and owners on the real machine", () => {
  let dir: string;
  let host: ReturnType<typeof realHost>;
  beforeAll(clear);
  afterAll(clear);
  beforeEach(() => {
    dir = realpathSync(mkdtempSync(join(tmpdir(), "mesh-accounts-")));
    chmodSync(dir, 0o755);
    host = realHost(dir);
  });
  afterEach(() => {
    rmSync(dir, { recursive: true, force: true });
    clear();
  });

  test("makes system accounts without home and shell, in their groups, and does nothing the second time", async () => {
    const declaration = aDeclarationOf([
      aGroup("base.data", "meshzz-data"),
      aUser("base.a", "meshzz-a", { groups: ["meshzz-data"], home: "/nonexistent/a" }),
    ]);
    expect((await host.apply(declaration)).changed).toBe(2);
    expect(id("-Gn", "meshzz-a").stdout.trim().split(" ").sort()).toEqual(["meshzz-a", "meshzz-data"]);
    const entry = execFileSync("getent", ["passwd", "meshzz-a"], { encoding: "utf8" });
    expect(entry).toMatch(/:\/nonexistent\/a:\/usr\/sbin\/nologin$/m);
    expect((await host.apply(declaration)).changed).toBe(0);
    const fewer = aDeclarationOf([aGroup("base.data", "meshzz-data"), aUser("base.a", "meshzz-a")]);
    expect((await host.apply(fewer)).changed).toBe(1);
    expect(id("-Gn", "meshzz-a").stdout.trim()).toBe("meshzz-a");
  });

  test("an account with another uid is a conflict and is not changed", async () => {
    execFileSync("useradd", ["-r", "-M", "-u", "7711", "meshzz-a"]);
    const pass = await host.apply(aDeclarationOf([aUser("base.a", "meshzz-a", { uid: 7712 })]));
    expect(pass.results.get("base.a")?.error).toMatch(/exists with uid 7711, declared is uid 7712/);
    expect(id("-u", "meshzz-a").stdout.trim()).toBe("7711");
  });

  test("FIL-1: owner and mode are exact, also when the owner of a setgid file changes", async () => {
    const path = join(dir, "f");
    const shared = join(dir, "shared");
    const accounts = [
      aUser("base.a", "meshzz-a"),
      aUser("base.b", "meshzz-b"),
      aGroup("base.data", "meshzz-data"),
    ];
    const owned = (owner: string) =>
      aDeclarationOf([
        ...accounts,
        aDirectory("web.shared", shared, { owner, group: "meshzz-data", mode: "2775" }),
        aFile("web.f", path, "x", { owner, group: "meshzz-data", mode: "2755" }),
        aFile("web.s", join(shared, "s"), "s", { owner, group: "meshzz-data", mode: "0400" }),
      ]);
    const before = process.umask(0o077);
    try {
      await host.apply(owned("meshzz-a"));
      expect([modeOf(shared), modeOf(path), modeOf(join(shared, "s"))]).toEqual(["2775", "2755", "0400"]);
      await host.apply(owned("meshzz-b"));
    } finally {
      process.umask(before);
    }
    expect([modeOf(shared), modeOf(path), modeOf(join(shared, "s"))]).toEqual(["2775", "2755", "0400"]);
    const uid = Number(id("-u", "meshzz-b").stdout);
    expect([lstatSync(shared).uid, lstatSync(path).uid, lstatSync(join(shared, "s")).uid]).toEqual([
      uid,
      uid,
      uid,
    ]);
    expect((await host.apply(owned("meshzz-b"))).changed).toBe(0);
  });

  test("FIL-5: without remove an account stays and is kept; with it, it goes, and no file of its home does", async () => {
    const home = join(dir, "data");
    mkdirSync(home);
    writeFileSync(join(home, "foreign"), "f");
    const users = (remove: boolean) => [
      aUser("base.a", "meshzz-a", { home, remove }),
      aUser("base.b", "meshzz-b", { home: "/", remove }),
      aUser("base.c", "meshzz-c", { home, remove, system: false }),
    ];
    await host.apply(aDeclarationOf(users(false)));
    await host.apply(aDeclarationOf([]));
    expect(NAMES.slice(0, 3).map(exists)).toEqual([true, true, true]);
    const left = Object.values(host.state.entries).map(({ left }) => left?.note);
    expect(left).toHaveLength(3);
    expect(left[0]).toContain("stays");

    expect((await host.apply(aDeclarationOf(users(true)))).changed).toBe(0);
    await host.apply(aDeclarationOf([aFile("x.x", join(dir, "x"), "x")]));
    expect(NAMES.slice(0, 3).map(exists)).toEqual([false, false, false]);
    expect(existsSync(join(home, "foreign"))).toBe(true);
    expect(host.events.join("\n")).toContain(`its home ${home} is left`);
  });

  test("an account that was there before is adopted and never removed", async () => {
    execFileSync("useradd", ["-r", "-M", "meshzz-a"]);
    await host.apply(aDeclarationOf([aUser("base.a", "meshzz-a", { remove: true })]));
    await host.apply(aDeclarationOf([]));
    expect(exists("meshzz-a")).toBe(true);
    expect(host.state.entries["user:meshzz-a"]?.left?.note).toContain("was there before");
  });

  test("a file whose owner does not exist is refused with the name, and nothing is left of it", async () => {
    const pass = await host.apply(
      aDeclarationOf([aFile("web.f", join(dir, "f"), "x", { owner: "meshzz-a" })]),
    );
    expect(pass.results.get("web.f")?.error).toMatch(/no user meshzz-a/);
    expect(existsSync(join(dir, "f"))).toBe(false);
  });

  test("a tool that fails is reported with what it said, and the rest goes on", async () => {
    const pass = await host.apply(
      aDeclarationOf([
        aUser("bad.a", "meshzz-a", { groups: ["meshzz-nosuch"] }),
        aFile("web.f", join(dir, "f"), "x"),
      ]),
    );
    expect(pass.results.get("bad.a")?.error).toMatch(/useradd meshzz-a exited 6: .*meshzz-nosuch/);
    expect(existsSync(join(dir, "f"))).toBe(true);
  });
});

test("a user database that does not answer is an error for each account, never absence", async () => {
  const accounts = createAccounts(async () => ({ code: 3, stdout: "", stderr: "cannot enumerate" }));
  await expect(accounts.users(["web"])).rejects.toBeInstanceOf(UserDatabaseSilent);
});

test("all accounts of a kind are asked for at once, and not again while nothing moved", async () => {
  const calls: string[][] = [];
  const accounts = createAccounts(async (_tool, args) => {
    calls.push([...args]);
    return { code: 2, stdout: "a:x:1:1::/:/bin/sh\n", stderr: "" };
  });
  expect([...(await accounts.users(["a", "b"])).keys()]).toEqual(["a"]);
  await accounts.users(["b", "a"]);
  expect(calls).toEqual([["passwd", "a", "b"]]);
});
