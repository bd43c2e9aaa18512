import { unlinkSync } from "node:fs";
import { join } from "node:path";

/** Called at a named point of a program; a test makes the process die there. */
export type Fault = (point: string) => void;

export const noFault: Fault = () => {};

/**
 * The fault points of one process. Each program's config.ts reads MESH_FAULT and passes it here; whoever has a point gets
 * the function injected.
 * @param wanted "NAME" dies at the first time that point is reached, "NAME#3" at the third; "@DIR" whenever DIR holds a file
 *   of the point's name, which is removed first, so that of several processes one dies, once; anything empty never
 */
export function faultAt(wanted: string | null | undefined): Fault {
  if (!wanted) return noFault;
  if (wanted.startsWith("@")) return armedIn(wanted.slice(1));
  const [name, nth] = wanted.split("#");
  let left = Number(nth ?? 1);
  return (point) => {
    if (point !== name) return;
    left -= 1;
    if (left <= 0) die();
  };
}

function armedIn(dir: string): Fault {
  return (point) => {
    try {
      unlinkSync(join(dir, point));
    } catch {
      return;
    }
    die();
  };
}

function die(): void {
  // SIGKILL to oneself is pending before kill() returns to user code: nothing after this line runs.
  process.kill(process.pid, "SIGKILL");
}
