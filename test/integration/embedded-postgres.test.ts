import { spawn } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import pg from "pg";
import { describe, expect, test } from "vitest";
import { bundled } from "../support/bundle.ts";
import { eventually } from "../support/eventually.ts";
import { aDatabase, ownPostgres, useDatabase } from "../support/postgres.ts";

async function one(url: string, sql: string): Promise<unknown> {
  const client = new pg.Client({ connectionString: url });
  client.on("error", () => {});
  await client.connect();
  try {
    return Object.values((await client.query(sql)).rows[0] ?? {})[0];
  } finally {
    await client.end();
  }
}

describe("the database of a test file", () => {
  const database = useDatabase();

  test("two clones do not see each other's tables", async () => {
    const other = await aDatabase();
    await one(database.url, "CREATE TABLE mine AS SELECT 1");
    expect(await one(other.url, "SELECT to_regclass('mine')")).toBeNull();
    await other.drop();
  });

  test("a wrong password is refused", async () => {
    const url = new URL(database.url);
    url.password = "wrong";
    await expect(one(url.href, "SELECT 1")).rejects.toMatchObject({ code: "28P01" });
  });
});

describe("a server of one's own", () => {
  test("BLD-2: it runs under an account that is not root", async () => {
    const server = await ownPostgres();
    const uid = /^Uid:\s+(\d+)/m.exec(readFileSync(`/proc/${server.pid()}/status`, "utf8"))?.[1];
    expect(Number(uid)).toBeGreaterThan(0);
    await server.stop();
  });

  test("killed by SIGKILL it starts again on the same port with its rows", async () => {
    const server = await ownPostgres();
    await one(server.url, "CREATE TABLE kept AS SELECT 7 AS n");
    server.kill();
    await server.start();
    expect(await one(server.url, "SELECT n FROM kept")).toBe(7);
    await server.stop();
    expect(existsSync(server.dir)).toBe(false);
  });

  test("BLD-2: its owner killed by SIGKILL leaves neither server nor folder behind", async () => {
    const fixture = fileURLToPath(new URL("../fixtures/own-postgres.ts", import.meta.url));
    const program = await bundled(fixture);
    const owner = spawn(process.execPath, [program.file], { stdio: ["ignore", "pipe", "inherit"] });
    const [line] = (await new Promise<Buffer>((resolve) => owner.stdout.once("data", resolve)))
      .toString()
      .split("\n");
    const { pid, dir } = JSON.parse(line!);
    expect(existsSync(`/proc/${pid}`)).toBe(true);
    owner.kill("SIGKILL");
    await eventually(() => {
      expect(existsSync(`/proc/${pid}`)).toBe(false);
      expect(existsSync(dir)).toBe(false);
    });
    program.remove();
  });
});
