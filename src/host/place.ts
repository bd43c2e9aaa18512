import { existsSync, mkdirSync, realpathSync } from "node:fs";
import { userInfo } from "node:os";
import { join, resolve } from "node:path";
import { meshError } from "../errors.ts";
import type { HostPlace } from "../resources/driver.ts";

export class RootUnusable extends meshError(
  "root-unusable",
  "stalled",
  (f: { root: string; why: string }) =>
    `--root ${f.root}: ${f.why}; expected a directory that this user may write in`,
) {}

function nameOf(uid: number): string {
  try {
    return userInfo().username;
  } catch {
    return String(uid);
  }
}

/**
 * Where this host works. The root's own path is resolved once; below it no link is followed.
 * @param make whether a missing root is made
 */
export function placeAt(root: string, make: boolean): HostPlace {
  let real: string;
  try {
    if (make) mkdirSync(root, { recursive: true });
    // A root that is not there yet is only looked at: everything below it is absent.
    real = make || existsSync(root) ? realpathSync(root) : resolve(root);
  } catch (cause) {
    throw new RootUnusable(
      { root, why: (cause as NodeJS.ErrnoException).code ?? "cannot be used" },
      { cause },
    );
  }
  const uid = process.getuid!();
  return {
    root: real,
    real: real === "/",
    invoker: { uid, gid: process.getgid!(), name: nameOf(uid) },
    realPath: (declared) => (real === "/" ? declared : real + declared),
    stateDir: join(real, "var/lib/mesh-host"),
  };
}
