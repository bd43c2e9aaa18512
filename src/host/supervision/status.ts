import { constants } from "node:os";
import { iso } from "../../io/clock.ts";
import type { Exit, ProcessRecord } from "./record.ts";
import { keyOf } from "./shared.ts";
import type { ProcessSpec, ProcessStatus } from "./types.ts";

/** "0", "1", "137 (SIGKILL)" or "unknown". */
export function exitText(exit: Pick<Exit, "code">): string {
  if (exit.code === null) return "unknown";
  const name = Object.entries(constants.signals).find(([, n]) => n === exit.code! - 128)?.[0];
  return name ? `${exit.code} (${name})` : `${exit.code}`;
}

/** What is only in memory: whether the run lives, and how many checks in a row failed. */
export interface Live {
  alive: boolean;
  checkFails: number;
  checkError: string | null;
}

/** A proven service is failing after so many failed checks in a row. */
export const FAILED_CHECKS = 3;

/** The version that is to run now. */
export function versionOf(record: ProcessRecord): ProcessSpec | null {
  return record.policy.rolledBack ? record.proven : record.wanted;
}

function stateOf(record: ProcessRecord, live: Live): ProcessStatus["state"] {
  const spec = record.wanted;
  if (record.policy.halted) return "halted";
  if (!spec) return live.alive ? "unknown" : "stopped";
  if (spec.run === "once") return live.alive ? "running" : record.exit ? "exited" : "stopped";
  if (record.policy.rolledBack) return "rolled-back";
  if (live.alive) return "running";
  if (record.policy.due !== null) return "backing-off";
  return record.exit ? "exited" : "stopped";
}

function proofOf(record: ProcessRecord, live: Live): ProcessStatus["proof"] {
  const spec = record.wanted;
  if (!spec) return "proving";
  if (spec.run === "once") {
    if (spec.schedule !== null || record.done === spec.digest) return "proven";
    return record.error !== null && !live.alive ? "failed" : "proving";
  }
  if (record.policy.rolledBack || record.policy.halted) return "failed";
  if (!live.alive || !record.run?.passed || record.run.key !== keyOf(spec.digest)) return "proving";
  return live.checkFails >= FAILED_CHECKS ? "failed" : "proven";
}

export function statusOf(record: ProcessRecord, live: Live): ProcessStatus {
  const spec = record.wanted;
  const running = [spec, record.proven].find((each) => each && keyOf(each.digest) === record.run?.key);
  return {
    id: record.id,
    state: stateOf(record, live),
    pid: live.alive ? (record.run?.main?.pid ?? null) : null,
    restarts: record.policy.restarts,
    since: iso(record.since),
    exit: record.exit ? exitText(record.exit) : null,
    runningDigest: live.alive ? (running?.digest ?? null) : null,
    wantedDigest: spec?.digest ?? "",
    proof: proofOf(record, live),
    error: record.error ?? live.checkError,
    last: record.last,
  };
}
