import { meshError } from "../../errors.ts";

const tail = (last: string[]) => (last.length ? `; last output: ${last[last.length - 1]}` : "");

export class CommandMissing extends meshError(
  "command-missing",
  "retry",
  (f: { id: string; command: string; looked: string }) =>
    `process ${f.id}: command ${JSON.stringify(f.command)} was not found (ENOENT) in ${f.looked}; install it, or correct \`command\``,
) {}

export class CommandNotExecutable extends meshError(
  "command-not-executable",
  "retry",
  (f: { id: string; file: string }) =>
    `process ${f.id}: ${f.file} cannot be executed (EACCES); it must be a file with the executable bit set`,
) {}

export class WorkingFolderMissing extends meshError(
  "working-folder-missing",
  "retry",
  (f: { id: string; cwd: string; why: string }) =>
    `process ${f.id}: cwd ${f.cwd} is not a folder (${f.why}); declare it as a directory, or correct \`cwd\``,
) {}

export class ProcessUserMissing extends meshError(
  "process-user-missing",
  "retry",
  (f: { id: string; user: string; why: string }) =>
    `process ${f.id}: user ${f.user} ${f.why}; declare it as a user of the module, or correct \`user\``,
) {}

export class EnvFileUnreadable extends meshError(
  "env-file-unreadable",
  "retry",
  (f: { id: string; file: string; why: string }) =>
    `process ${f.id}: envFrom ${f.file}: ${f.why}; expected lines of KEY=VALUE`,
) {}

export class SpawnFailed extends meshError(
  "spawn-failed",
  "retry",
  (f: { id: string; why: string }) => `process ${f.id} could not be started: ${f.why}`,
) {}

export class OnceFailed extends meshError(
  "once-failed",
  "retry",
  (f: { id: string; exit: string; last: string[] }) =>
    `run-once ${f.id} ended with exit ${f.exit}${tail(f.last)}; it is tried again, \`mesh logs\` shows all of its output`,
) {}

export class StopFailed extends meshError(
  "stop-failed",
  "retry",
  (f: { id: string; pids: number[]; afterMs: number }) =>
    `process ${f.id}: ${f.pids.length} process(es) still there ${f.afterMs} ms after SIGKILL (pid ${f.pids.slice(0, 8).join(", ")}); nothing else was started in its place`,
) {}

export class ScheduleInvalid extends meshError(
  "schedule-invalid",
  "stalled",
  (f: { id: string; schedule: string; why: string }) =>
    `process ${f.id}: schedule ${JSON.stringify(f.schedule)} is not five cron fields that ever come up (${f.why})`,
) {}

export class ProcessUnknown extends meshError(
  "process-unknown",
  "stalled",
  (f: { id: string; known: string[] }) =>
    `no process ${f.id} is supervised here; known: ${f.known.slice(0, 20).join(", ") || "none"}`,
) {}

export class SupervisorClosed extends meshError(
  "supervisor-closed",
  "retry",
  (f: { id: string }) => `process ${f.id}: the host stops; what was begun goes on at its next start`,
) {}
