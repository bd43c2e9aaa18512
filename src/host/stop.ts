import { existsSync } from "node:fs";
import { faultAt } from "../io/faults.ts";
import type { HostEnvironment } from "./config.ts";
import { superviseAt, supervisionDir } from "./machine.ts";
import { placeAt } from "./place.ts";
import { lockState } from "./state.ts";

/** Stops what runs, side by side; what ended by itself keeps its record, so that a run-once is not run again. */
export async function stopWorkloads(
  root: string,
  environment: HostEnvironment,
  say: (line: string) => void,
): Promise<void> {
  const place = placeAt(root, false);
  if (!existsSync(supervisionDir(place))) return;
  const lock = lockState(place.stateDir);
  const supervisor = superviseAt(place, environment, faultAt(environment.fault));
  try {
    await supervisor.resume();
    const running = supervisor.list().filter(({ pid, state }) => pid !== null || state === "backing-off");
    const outcomes = await Promise.allSettled(running.map(({ id }) => supervisor.remove(id)));
    outcomes.forEach((outcome, i) => {
      if (outcome.status === "fulfilled") say(`stopped ${running[i]!.id}`);
    });
    const failed = outcomes.find((outcome) => outcome.status === "rejected");
    if (failed) throw failed.reason;
  } finally {
    await supervisor.close();
    lock.free();
  }
}
