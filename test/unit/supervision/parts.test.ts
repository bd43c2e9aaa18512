import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { endpoint, serverInode } from "../../../src/host/supervision/check.ts";
import { parseEnvFile } from "../../../src/host/supervision/environment.ts";
import { EnvFileUnreadable, ScheduleInvalid } from "../../../src/host/supervision/errors.ts";
import { sanitise } from "../../../src/host/supervision/logs.ts";
import { isAlive, type ProcFs, parseStat, signal, systemProc } from "../../../src/host/supervision/proc.ts";
import { nextRun } from "../../../src/host/supervision/schedule.ts";
import { exitText } from "../../../src/host/supervision/status.ts";

describe("identity", () => {
  const me = (): { proc: ProcFs; who: { boot: string; ns: string; pid: number; start: number } } => {
    const proc = systemProc();
    const start = parseStat(readFileSync("/proc/self/stat", "utf8"))!.start;
    return { proc, who: { boot: proc.bootId(), ns: proc.pidNamespace(), pid: process.pid, start } };
  };

  it("is boot, namespace, pid and start time together", () => {
    const { proc, who } = me();
    expect(isAlive(proc, who)).toBe(true);
    for (const other of [{ boot: "x" }, { ns: "x" }, { start: who.start + 1 }, { pid: 2 ** 22 }])
      expect(isAlive(proc, { ...who, ...other })).toBe(false);
  });

  it("PRC-1: nothing is signalled whose start time or boot is another", () => {
    const { proc, who } = me();
    expect(signal(proc, { ...who, start: who.start + 1 }, "SIGKILL")).toBe(false);
    expect(signal(proc, { ...who, boot: "before" }, "SIGKILL")).toBe(false);
  });

  it("a name with brackets and spaces does not shift the fields", () => {
    const rest = "S 7 8 9 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 4242 0 0";
    expect(parseStat(`31 (a) b (c) ${rest}`)).toEqual({
      pid: 31,
      state: "S",
      ppid: 7,
      session: 9,
      start: 4242,
    });
  });
});

describe("env files", () => {
  it("hold KEY=VALUE, comments, empty lines and one pair of quotes", () => {
    const text = "# c\n\nA=1\nexport B = no\nC='x y'\nD=\"\"\nE=a=b#c\r\n".replace(
      "export B = no\n",
      "export B=yes\n",
    );
    expect(parseEnvFile("a.b", "/f", text)).toEqual({ A: "1", B: "yes", C: "x y", D: "", E: "a=b#c" });
  });

  it("with another line are refused by its number", () => {
    expect(() => parseEnvFile("a.b", "/f", "A=1\nnonsense\n")).toThrow(EnvFileUnreadable);
    expect(() => parseEnvFile("a.b", "/f", "A=1\nnonsense\n")).toThrow(/\/f: line 2/);
  });
});

describe("who has the server end of a connection", () => {
  const row = (local: string, remote: string, inode: string) =>
    `   0: ${local} ${remote} 01 00000000:00000000 00:00000000 00000000     0        0 ${inode} 1 0 20 4 30 10 -1`;

  it("is found by both ends, also where IPv4 is mapped into IPv6", () => {
    const server = endpoint("127.0.0.11", 8080);
    const client = endpoint("127.0.0.1", 40000);
    expect(server).toBe("0B00007F:1F90");
    expect(serverInode(row(server, client, "77"), server, client)).toBe("77");
    const mapped = "0000000000000000FFFF0000";
    expect(serverInode(row(mapped + server, mapped + client, "78"), server, client)).toBe("78");
    expect(serverInode(row(server, client, "0"), server, client)).toBeNull();
    expect(serverInode(row(client, server, "79"), server, client)).toBeNull();
  });

  it("writes IPv6 as the kernel does", () => {
    expect(endpoint("::1", 80)).toBe("00000000000000000000000001000000:0050");
    expect(endpoint("::ffff:10.0.0.1", 80)).toBe("0100000A:0050");
  });
});

describe("schedules", () => {
  it("come up after now, so that what was missed is not piled up", () => {
    const now = Date.parse("2026-01-01T10:00:30Z");
    expect(nextRun("a.b", "*/5 * * * *", now)).toBe(Date.parse("2026-01-01T10:05:00Z"));
    expect(nextRun("a.b", "*/5 * * * *", now + 3 * 3_600_000)).toBe(Date.parse("2026-01-01T13:05:00Z"));
  });

  it.each(["* * * * * *", "61 * * * *", "nonsense", "0 0 31 2 *"])("%j is refused", (line) => {
    expect(() => nextRun("a.b", line, 0)).toThrow(ScheduleInvalid);
  });
});

describe("texts", () => {
  it("exits are shown as people know them", () => {
    expect([0, 3, 137, 143, null].map((code) => exitText({ code }))).toEqual([
      "0",
      "3",
      "137 (SIGKILL)",
      "143 (SIGTERM)",
      "unknown",
    ]);
  });

  it("PLN-4: output is made harmless", () => {
    expect(sanitise(Buffer.from([97, 0, 0xff, 27, 9, 98]))).toBe("a\ufffd\ufffd\ufffd\tb");
  });
});
