/** Called at a named point of a program; a test makes the process die there. */
export type Fault = (point: string) => void;

export const noFault: Fault = () => {};

/**
 * The fault points of one process. Each program's config.ts reads MESH_FAULT and passes it here; whoever has a point gets
 * the function injected.
 * @param wanted "NAME" dies at the first time that point is reached, "NAME#3" at the third; anything empty never
 */
export function faultAt(wanted: string | null | undefined): Fault {
  if (!wanted) return noFault;
  const [name, nth] = wanted.split("#");
  let left = Number(nth ?? 1);
  return (point) => {
    if (point !== name) return;
    left -= 1;
    // SIGKILL to oneself is pending before kill() returns to user code: nothing after this line runs.
    if (left <= 0) process.kill(process.pid, "SIGKILL");
  };
}
