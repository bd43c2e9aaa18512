import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openInventory } from "../../../src/inventory/index.ts";
import { SchemaTooNew } from "../../../src/inventory/migrate.ts";
import { StoreUnreachable } from "../../../src/io/postgres.ts";
import { aDatabase, type TestDatabase } from "../../support/postgres.ts";

describe("the schema", () => {
  let database: TestDatabase;
  beforeAll(async () => {
    database = await aDatabase("template0");
  });
  afterAll(() => database.drop());

  test("four controllers that start at once on an empty database all find it whole", async () => {
    const opened = await Promise.all([1, 2, 3, 4].map((n) => openInventory(database.url, { name: `c${n}` })));
    for (const { db } of opened) {
      expect(await db.query("SELECT count(*) AS n FROM mesh.migrations")).toEqual([{ n: 1 }]);
      expect(await db.query("SELECT epoch FROM mesh.active")).toEqual([{ epoch: 0 }]);
    }
    await Promise.all(opened.map((inventory) => inventory.close()));
  });

  test("a store that needs a newer release is refused by name", async () => {
    const inventory = await openInventory(database.url);
    await inventory.db.query("INSERT INTO mesh.migrations (id, name, least) VALUES (99, 'later', 99)");
    await expect(openInventory(database.url)).rejects.toThrow(SchemaTooNew);
    await inventory.db.query("UPDATE mesh.migrations SET least = 1 WHERE id = 99");
    await (await openInventory(database.url)).close();
    await inventory.close();
  });

  test("a store that is not there is named, without its password", async () => {
    const opening = openInventory("postgres://mesh:geheim@127.0.0.1:1/postgres");
    await expect(opening).rejects.toThrow(StoreUnreachable);
    await expect(opening).rejects.toThrow(/127\.0\.0\.1:1\/postgres.*ECONNREFUSED/);
    await expect(opening).rejects.not.toThrow(/geheim/);
  });
});
