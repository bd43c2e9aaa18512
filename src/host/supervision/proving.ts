import { messageOf } from "../../errors.ts";
import { type CheckResult, runCheck } from "./check.ts";
import { isAlive, upFor } from "./proc.ts";
import type { Run } from "./record.ts";
import type { Shared } from "./shared.ts";
import { learnMain, prepare } from "./start.ts";
import { membersOf } from "./tree.ts";
import type { ProcessSpec } from "./types.ts";

const FIRST_CHECK = 50;

export interface Proving {
  shared: Shared;
  spec: ProcessSpec;
  run: Run;
  signal: AbortSignal;
  /** `run` is still the one that is kept. */
  current(): boolean;
  /** Nothing is left to be waited for, where there is no check. */
  steady(): boolean;
  /** Takes the result of a check, or that it stayed up long enough (null). */
  took(result: CheckResult): Promise<void>;
}

/** Waits for the proof of a run, then for its count of failures to be reset, and goes on checking while it is kept. */
export async function prove(proving: Proving): Promise<void> {
  const { shared, spec, run, signal } = proving;
  const over = () => signal.aborted || !proving.current();
  for (let wait = FIRST_CHECK; !over(); wait *= 2) {
    if (spec.check) {
      await shared.clock.sleep(run.passed ? spec.checkEvery : Math.min(wait, spec.checkEvery), signal);
      const result = await check(shared, spec, run);
      if (over()) return;
      await proving.took(result);
    } else {
      const goal = run.passed ? spec.restart.resetAfter : spec.minUp;
      await shared.clock.sleep(Math.max(10, goal - up(shared, run)), signal);
      if (up(shared, run) >= goal && isAlive(shared.proc, run.main)) await proving.took(null);
      if (run.passed && proving.steady()) return;
    }
  }
}

function up(shared: Shared, run: Run): number {
  return learnMain(shared, run) && run.main ? upFor(shared.proc, run.main) : 0;
}

async function check(shared: Shared, spec: ProcessSpec, run: Run): Promise<CheckResult> {
  const { proc, clock } = shared;
  const wanted = spec.check!;
  try {
    const ready = "exec" in wanted ? await prepare(shared, spec) : null;
    const exec = ready && "exec" in wanted && { argv: ready.as(wanted.exec), env: ready.env, cwd: spec.cwd };
    const members = () => membersOf(proc, run, null).map((who) => who.pid);
    return await runCheck(wanted, { proc, clock, members, exec: exec || null });
  } catch (error) {
    return messageOf(error);
  }
}
