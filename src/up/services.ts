import { chmod, mkdir } from "node:fs/promises";
import { createServer } from "node:net";
import { dirname, join } from "node:path";
import { findByArguments, type Part } from "./keep.ts";
import type { Layout } from "./layout.ts";
import { findNatsServer, natsUrl, startNats, stopNats } from "./nats.ts";
import {
  databaseAccount,
  findPostgres,
  initCluster,
  placeForDatabase,
  preparePostgresBinaries,
  startPostgres,
} from "./postgres.ts";
import { stopProcess } from "./program.ts";
import type { UpState } from "./state.ts";

const BROKER_USER = "mesh";

/** Where Postgres lives: in the mesh's folder, or elsewhere where the database's account cannot enter that. */
export async function databasePlace(layout: Layout): Promise<string> {
  const place = placeForDatabase(layout.dir, await databaseAccount());
  return place === layout.dir ? join(layout.dir, "postgres") : place;
}

/** As root the database runs under another account, which must get through the folders whatever the umask is. */
export async function openDatabasePlace(layout: Layout, database: string): Promise<void> {
  await mkdir(database, { recursive: true, mode: 0o755 });
  if (process.getuid?.() !== 0) return;
  await chmod(database, 0o755);
  await chmod(database.startsWith(layout.dir) ? layout.dir : dirname(database), 0o755);
}

export function postgresPart(layout: Layout, state: UpState): Part {
  const database = state.database ?? layout.dir;
  const dataDir = join(database, "data");
  return {
    name: "postgres",
    find: async () => (await findPostgres(dataDir))?.pid ?? null,
    start: async () => {
      await openDatabasePlace(layout, database);
      const binaries = await preparePostgresBinaries(join(database, "programs"), { inPlace: true });
      await initCluster({ binaries, dataDir });
      const port = state.storePort;
      return startPostgres({ binaries, dataDir, port, socketDir: null, logFile: layout.logFile("postgres") });
    },
    stop: async (pid) => {
      const running = await findPostgres(dataDir);
      if (running) await running.stop();
      else await stopProcess(pid, 15_000);
    },
  };
}

/** The URL of the embedded Postgres, null while it does not take connections. */
export async function storeUrl(state: UpState): Promise<string | null> {
  return (await findPostgres(join(state.database ?? "", "data")))?.url ?? null;
}

export function natsPart(layout: Layout, state: UpState, path: string): Part {
  return {
    name: "nats",
    find: async () => {
      const { file } = await findNatsServer(path);
      return findByArguments([file, "-c", join(layout.dir, "nats.conf")]);
    },
    start: async () => {
      const { file } = await findNatsServer(path);
      return startNats({
        dir: layout.dir,
        binary: file,
        port: state.brokerPort,
        user: BROKER_USER,
        pass: state.brokerPassword,
        log: layout.logFile("nats"),
      });
    },
    stop: stopNats,
  };
}

export function brokerUrl(state: UpState): string {
  return natsUrl({ port: state.brokerPort, user: BROKER_USER, pass: state.brokerPassword });
}

export function portIsFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once("error", () => resolve(false));
    server.listen(port, "127.0.0.1", () => server.close(() => resolve(true)));
  });
}
