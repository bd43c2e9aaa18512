import { randomBytes } from "node:crypto";
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import pg from "pg";
import type { TestProject } from "vitest/node";
import { openInventory } from "../../src/inventory/index.ts";
import { type OwnPostgres, ownPostgres } from "./own-postgres.ts";

declare module "vitest" {
  interface ProvidedContext {
    /** Base URL of the little server in vitest's main process that hands out databases. */
    databases: string;
  }
}

/**
 * One Postgres per test run, started when the first test file asks for a database: in vitest's main process, so that it
 * lives as long as the run and never longer. `POST /clone` answers a database's URL, `POST /drop?url=…` removes it.
 */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const run = databaseRun();
  const server = createServer((request, response) => {
    answer(run, request).then(
      (body) => response.end(body),
      (error) => {
        response.statusCode = 500;
        response.end(String(error?.stack ?? error));
      },
    );
  });
  server.listen(0, "127.0.0.1").unref();
  await new Promise((resolve) => server.once("listening", resolve));
  project.provide("databases", `http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  return async () => {
    server.close();
    await run.end();
  };
}

async function answer(run: ReturnType<typeof databaseRun>, request: IncomingMessage): Promise<string> {
  const url = new URL(request.url ?? "/", "http://localhost");
  if (url.pathname === "/clone") return run.clone(url.searchParams.get("template") ?? "mesh_template");
  if (url.pathname === "/drop") return run.drop(url.searchParams.get("name") ?? "");
  if (url.pathname === "/keep") return run.keep(url.searchParams.get("name") ?? "");
  throw new Error(`no such path: ${url.pathname}`);
}

function databaseRun() {
  let started: Promise<{ server: OwnPostgres; admin: pg.Client }> | null = null;
  // CREATE DATABASE refuses a template that another CREATE DATABASE is reading at the same moment.
  let queue: Promise<unknown> = Promise.resolve();
  const kept: string[] = [];
  const inTurn = <T>(work: () => Promise<T>): Promise<T> => {
    const next = queue.then(work, work);
    queue = next.catch(() => {});
    return next;
  };
  const start = () => {
    started ??= startWithTemplate();
    return started;
  };
  return {
    async clone(template: string): Promise<string> {
      const { server, admin } = await start();
      const name = `t_${randomBytes(5).toString("hex")}`;
      await inTurn(() => admin.query(`CREATE DATABASE ${name} TEMPLATE ${template}`));
      return withDatabase(server.url, name);
    },
    async drop(name: string): Promise<string> {
      const { admin } = await start();
      await inTurn(() => admin.query(`DROP DATABASE IF EXISTS ${name.replace(/\W/g, "")} WITH (FORCE)`));
      return "";
    },
    async keep(name: string): Promise<string> {
      kept.push(name);
      return (await start()).server.dir;
    },
    async end(): Promise<void> {
      if (!started) return;
      const { server, admin } = await started;
      await admin.end();
      await (kept.length > 0 ? server.keep() : server.stop());
    },
  };
}

async function startWithTemplate(): Promise<{ server: OwnPostgres; admin: pg.Client }> {
  const server = await ownPostgres();
  const admin = new pg.Client({ connectionString: server.url });
  admin.on("error", () => {});
  await admin.connect();
  await admin.query("CREATE DATABASE mesh_template");
  const inventory = await openInventory(withDatabase(server.url, "mesh_template"), { name: "template" });
  await inventory.close();
  return { server, admin };
}

function withDatabase(url: string, name: string): string {
  const other = new URL(url);
  other.pathname = `/${name}`;
  return other.href;
}
