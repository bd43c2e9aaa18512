import { afterAll, afterEach, beforeAll, inject } from "vitest";

export { type OwnPostgres, ownPostgres } from "./own-postgres.ts";

export interface TestDatabase {
  url: string;
  name: string;
  drop(): Promise<void>;
}

/** A fresh clone of the template (the inventory's schema, no rows); `template0`: an empty database. The caller drops it. */
export async function aDatabase(
  template: "mesh_template" | "template0" = "mesh_template",
): Promise<TestDatabase> {
  const url = await ask(`/clone?template=${template}`);
  const name = new URL(url).pathname.slice(1);
  return { url, name, drop: async () => void (await ask(`/drop?name=${name}`)) };
}

/**
 * One database for the test file that calls it at its top level. Dropped after the file's tests, kept with its name
 * printed when one of them failed. Read `url` inside tests and hooks only.
 */
export function useDatabase(): { readonly url: string } {
  let database: TestDatabase | null = null;
  let failed = false;
  beforeAll(async () => {
    database = await aDatabase();
  });
  afterEach(({ task }) => {
    failed ||= task.result?.state === "fail";
  });
  afterAll(async () => {
    if (!database) return;
    if (!failed) return database.drop();
    const dir = await ask(`/keep?name=${database.name}`);
    console.error(`database ${database.name} kept: its server's folder stays after the run: ${dir}`);
  });
  return {
    get url() {
      if (!database) throw new Error("useDatabase: read `url` inside a test or hook");
      return database.url;
    },
  };
}

async function ask(path: string): Promise<string> {
  const response = await fetch(`${inject("databases")}${path}`, { method: "POST" });
  const text = await response.text();
  if (!response.ok) throw new Error(`test database: ${text}`);
  return text;
}
