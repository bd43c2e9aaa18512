import { execFile } from "node:child_process";
import { meshError } from "../errors.ts";

export class CommandNotStarted extends meshError(
  "command-not-started",
  "retry",
  (f: { command: string; why: string }) =>
    `${f.command} could not be started (${f.why}); install it or put it on the PATH`,
) {}

export class CommandTimedOut extends meshError(
  "command-timed-out",
  "retry",
  (f: { command: string; ms: number }) =>
    `${f.command} did not end within ${f.ms / 1000} s and was killed; see what it waits for (a lock, the network)`,
) {}

/** `code` is null when a signal ended it. */
export interface Ran {
  code: number | null;
  stdout: string;
  stderr: string;
}

export type Exec = (
  command: string,
  args: readonly string[],
  options?: { timeoutMs?: number },
) => Promise<Ran>;

/** Tools of the system answer alike whatever the invoker's environment. */
const TOOL_ENV = { PATH: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", LC_ALL: "C" };

/**
 * Runs one short tool to its end, without a shell, with a fixed environment and bounded time and output (1 MiB).
 * A non-zero exit is an answer, not an error.
 */
export const exec: Exec = (command, args, { timeoutMs = 30_000 } = {}) =>
  new Promise((resolve, reject) => {
    execFile(
      command,
      args,
      {
        env: TOOL_ENV,
        cwd: "/",
        timeout: timeoutMs,
        killSignal: "SIGKILL",
        maxBuffer: 1024 * 1024,
        encoding: "utf8",
      },
      (error, stdout, stderr) => {
        if (!error) return resolve({ code: 0, stdout, stderr });
        if (typeof error.code === "number") return resolve({ code: error.code, stdout, stderr });
        if (error.killed) return reject(new CommandTimedOut({ command, ms: timeoutMs }, { cause: error }));
        if (error.signal) return resolve({ code: null, stdout, stderr });
        reject(
          new CommandNotStarted({ command, why: String(error.code ?? error.message) }, { cause: error }),
        );
      },
    );
  });
