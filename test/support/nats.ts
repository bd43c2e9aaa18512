import { spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { findNatsServer, freePort, natsConfig, natsReady, natsUrl } from "../../src/up/nats.ts";

/**
 * A real nats-server with JetStream, on a free port, in a temporary folder. A small `sh` in its own session holds the other
 * end of a pipe: when this process ends, however it ends, the server is killed and the folder removed.
 */
export interface TestNats {
  /** With its credential. */
  readonly url: string;
  readonly port: number;
  readonly user: string;
  readonly pass: string;
  readonly dir: string;
  /** null while it does not run. */
  readonly pid: number | null;
  /** Starts it again, on the same port and store. */
  start(): Promise<void>;
  /** kill -9. */
  kill(): Promise<void>;
  /** SIGSTOP and SIGCONT. */
  pause(): void;
  resume(): void;
  /** Empties the store; only while it does not run. */
  wipe(): void;
  /** Ends it and removes its folder. */
  stop(): Promise<void>;
}

// One keeper for the whole life of a test server; the folder goes when the pipe closes.
export const KEEPER = `
pid=
quit() { [ -z "$pid" ] || { kill -9 "$pid"; wait "$pid"; } 2>/dev/null; pid=; }
while read -r word; do
  case "$word" in
    start) "$1" -c "$2" >>"$3/log" 2>&1 & pid=$!; echo "$pid" ;;
    kill) quit; echo 0 ;;
  esac
done
quit
rm -rf "$3"
`;

export async function startTestNats(
  options: { started?: boolean; maxPayload?: number } = {},
): Promise<TestNats> {
  const { file } = await findNatsServer(process.env.PATH);
  const dir = mkdtempSync(join(tmpdir(), "mesh-nats-"));
  const storeDir = join(dir, "store");
  const credential = { user: "mesh", pass: "s3cret-of-the-test" };
  const port = await freePort();
  const name = `test-${port}-${process.pid}`;
  const config = join(dir, "nats.conf");
  writeFileSync(config, natsConfig({ ...credential, ...options, name, port, storeDir }), { mode: 0o600 });
  const keeper = keep(file, config, dir);
  let pid: number | null = null;

  const server: TestNats = {
    url: natsUrl({ ...credential, port }),
    port,
    ...credential,
    dir,
    get pid() {
      return pid;
    },
    async start() {
      if (pid !== null) return;
      mkdirSync(storeDir, { recursive: true });
      pid = await keeper.say("start");
      if (!(await natsReady(port, { name }))) throw new Error(`nats-server does not answer; see ${dir}/log`);
    },
    async kill() {
      await keeper.say("kill");
      pid = null;
    },
    pause: () => void (pid !== null && process.kill(pid, "SIGSTOP")),
    resume: () => void (pid !== null && process.kill(pid, "SIGCONT")),
    wipe() {
      if (pid !== null) throw new Error("the store is wiped only while the server does not run");
      rmSync(storeDir, { recursive: true, force: true });
    },
    async stop() {
      await keeper.end();
      pid = null;
    },
  };
  if (options.started !== false) await server.start();
  return server;
}

function keep(binary: string, config: string, dir: string) {
  const child = spawn("sh", ["-c", KEEPER, "keeper", binary, config, dir], {
    detached: true,
    stdio: ["pipe", "pipe", "inherit"],
  });
  const ended = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  return {
    /** Tells the keeper a word and returns the number it answers with. */
    say(word: "start" | "kill"): Promise<number> {
      const answer = new Promise<number>((resolve) => {
        child.stdout.once("data", (bytes: Buffer) => resolve(Number(bytes.toString().trim())));
      });
      child.stdin.write(`${word}\n`);
      return answer;
    },
    end(): Promise<void> {
      child.stdin.end();
      return ended;
    },
  };
}
