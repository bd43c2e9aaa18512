import { spawn } from "node:child_process";
import { existsSync, mkdtempSync } from "node:fs";
import { chmod, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  initCluster,
  type PostgresBinaries,
  preparePostgresBinaries,
  type RunningPostgres,
  startPostgres,
} from "../../src/up/postgres.ts";

/** A real server of one's own, in a temporary folder. Ends with the process that started it, however that ends. */
export interface OwnPostgres {
  url: string;
  dir: string;
  pid(): number;
  /** kill -9 of the server: its sessions are cut, its shared memory is left. */
  kill(): void;
  /** Starts it again on the same port and data. */
  start(): Promise<void>;
  /** Ends it, the folder goes. */
  stop(): Promise<void>;
  /** Ends it, the folder stays. */
  keep(): Promise<void>;
}

const PREFIX = "mesh-test-postgres-";

/** As fast as it gets: a crash of the machine may lose data, a crash of the server may not. */
const QUICK = {
  fsync: "off",
  full_page_writes: "off",
  max_connections: "200",
  shared_buffers: "64MB",
  io_method: "sync",
};

export async function ownPostgres(): Promise<OwnPostgres> {
  const dir = mkdtempSync(join(tmpdir(), PREFIX));
  await chmod(dir, 0o755);
  const guard = guardFolder(dir);
  const binaries = await preparePostgresBinaries(dir, { inPlace: true });
  const dataDir = join(dir, "data");
  await initCluster({ binaries, dataDir, sync: false });
  let running = await launch(binaries, dir, 0);
  return {
    url: running.url,
    dir,
    pid: () => running.pid,
    kill: () => process.kill(running.pid, "SIGKILL"),
    async start() {
      running = await launch(binaries, dir, running.port);
    },
    async stop() {
      await running.stop();
      await rm(dir, { recursive: true, force: true });
      guard.release();
    },
    async keep() {
      await running.stop();
      await removeKept();
      await writeFile(join(dir, "kept"), "");
      guard.release();
    },
  };
}

function launch(binaries: PostgresBinaries, dir: string, port: number): Promise<RunningPostgres> {
  return startPostgres({
    binaries,
    dataDir: join(dir, "data"),
    port,
    socketDir: null,
    logFile: join(dir, "postgres.log"),
    settings: QUICK,
    endsWithCaller: true,
  });
}

/** Only the newest failed run is kept. */
async function removeKept(): Promise<void> {
  for (const entry of await readdir(tmpdir())) {
    const dir = join(tmpdir(), entry);
    if (entry.startsWith(PREFIX) && existsSync(join(dir, "kept")))
      await rm(dir, { recursive: true, force: true });
  }
}

/** Removes `dir` when this process ends without having released it: its end closes the pipe that `read` waits on. */
export function guardFolder(dir: string): { release(): void } {
  const script =
    'read -r line && exit 0; n=0; while ! rm -rf "$1" && [ $n -lt 50 ]; do n=$((n+1)); sleep 0.1; done';
  const child = spawn("/bin/sh", ["-c", script, "guard-folder", dir], {
    detached: true,
    stdio: ["pipe", "ignore", "ignore"],
  });
  child.unref();
  (child.stdin as unknown as { unref(): void }).unref();
  child.stdin.on("error", () => {});
  return { release: () => void child.stdin.end("released\n") };
}
