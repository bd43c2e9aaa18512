import { execFileSync } from "node:child_process";
import { chmodSync, openSync, writeFileSync } from "node:fs";
import { userInfo } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { eventually } from "../../support/eventually.ts";
import {
  aHost,
  aProcess,
  isRoot,
  killableHost,
  linesIn,
  program,
  textOf,
} from "../../support/supervision.ts";

let host: ReturnType<typeof aHost>;
beforeEach(() => {
  host = aHost({ real: isRoot });
  chmodSync(host.dir, 0o777);
});
afterEach(() => host.end());

const told = async (name: string) => {
  const file = join(host.dir, name);
  await eventually(() => textOf(`${file}.done`) !== "");
  return {
    id: textOf(`${file}.done`).trim(),
    fds: linesIn(`${file}.fds`).flatMap((line) => / (\d+) -> (.*)$/.exec(line)?.slice(1, 3).join(" ") ?? []),
    env: Object.fromEntries(linesIn(`${file}.env`).map((line) => line.split(/=(.*)/s, 2))),
  };
};

describe("what a process is given", () => {
  it("SEC-5: only what is declared and a small base, no descriptor, nothing of the host's environment", async () => {
    const envFile = join(host.dir, "env");
    writeFileSync(envFile, "# comment\nFROM_FILE='a b'\nBOTH=file\n");
    const declared = { BYTES: `p$&q$1$$"\\'\`end`, BOTH: "declared", PWD: "/mine" };
    const command = [program("prints-itself.sh"), join(host.dir, "me")];
    const spec = aProcess({ command, env: declared, envFiles: [envFile] });
    const leak = openSync("/dev/null", "r");
    const env = { MESH_TEST_MARKER: "marker", NODE_OPTIONS: "--no-warnings", MESH_BROKER: "nats://u:p@h" };
    const other = await killableHost(join(host.dir, "state"), "", spec, { env, leak });
    const given = await told("me");
    other.kill("SIGKILL");
    await host.start();
    expect(given.env).toEqual({
      ...declared,
      FROM_FILE: "a b",
      HOME: userInfo().homedir,
      LANG: "C.UTF-8",
      LOGNAME: userInfo().username,
      PATH: process.env.PATH,
      USER: userInfo().username,
    });
    // 3 is what the listing itself has open.
    expect(given.fds.filter((fd) => !/^[0123] /.test(fd))).toEqual([]);
    expect(given.fds[0]).toBe("0 /dev/null");
    expect(given.fds[2]).toMatch(/^2 .*output\.log$/);
  });

  it("a value of several lines arrives to the byte", async () => {
    const supervisor = await host.start();
    const text = `one\n"two" \\ $HOME \${X}\nthree`;
    await supervisor.ensure(
      aProcess({ command: ["sh", "-c", 'printf %s "$TEXT"; sleep 1000'], env: { TEXT: text } }),
    );
    await eventually(() => expect(textOf(supervisor.logFile("web.server"))).toBe(text));
  });
});

describe.runIf(isRoot)("as another account", () => {
  const names = { user: `_mesh-t${process.pid}`, data: `mesh-d${process.pid}` };
  beforeAll(() => {
    execFileSync("groupadd", [names.data]);
    execFileSync("useradd", ["-M", "-d", "/var/empty", "-U", "-G", names.data, names.user]);
  });
  afterAll(() => {
    execFileSync("userdel", [names.user]);
    execFileSync("groupdel", [names.data]);
  });

  it("PRC-5: its uid, gid and groups and none of root's; HOME, USER and LOGNAME of the account", async () => {
    const supervisor = await host.start();
    const spec = aProcess({ command: [program("prints-itself.sh"), join(host.dir, "me")], user: names.user });
    await supervisor.ensure(spec);
    const { id, env } = await told("me");
    const own = (flag: string) => execFileSync("id", [flag, names.user], { encoding: "utf8" }).trim();
    expect(id).toBe(execFileSync("id", [names.user], { encoding: "utf8" }).trim());
    expect(id).not.toMatch(/root/);
    expect(own("-Gn").split(" ").sort()).toEqual([names.user, names.data].sort());
    expect(env).toMatchObject({ HOME: "/var/empty", USER: names.user, LOGNAME: names.user });
    expect(env.PATH).toBe("/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
  });

  it("the state of supervision is not readable by it", async () => {
    const supervisor = await host.start();
    const spec = aProcess({
      command: [
        "sh",
        "-c",
        `cat ${supervisor.logFile("web.server")} >/dev/null || echo denied >${join(host.dir, "told")}; sleep 1000`,
      ],
      user: names.user,
    });
    await supervisor.ensure(spec);
    await eventually(() => textOf(join(host.dir, "told")).includes("denied"));
  });
});
