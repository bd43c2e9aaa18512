import {
  chmodSync,
  chownSync,
  closeSync,
  constants,
  fstatSync,
  lstatSync,
  mkdirSync,
  openSync,
  readlinkSync,
  type Stats,
} from "node:fs";
import { meshError } from "../errors.ts";

export class PathRefused extends meshError(
  "path-refused",
  "retry",
  (f: { path: string; found: string; remedy: string }) => `${f.path}: ${f.found}; ${f.remedy}`,
) {}

export class PathFailed extends meshError(
  "path-failed",
  "retry",
  (f: { path: string; doing: string; why: string }) => `${f.path}: ${f.doing} failed: ${f.why}`,
) {}

const CAUSES: Record<string, string> = {
  ENOSPC: "no space left on the file system; free some",
  EDQUOT: "the disk quota is used up; free some",
  EROFS: "the file system is read-only; remount it writable or declare another path",
  EACCES: "permission denied; see who may write there",
  EPERM: "not permitted; run as root, or see whether the path is immutable (lsattr)",
  ENOENT: "it is not there",
  EIO: "the disk did not answer (input/output error); see the kernel log",
  EMFILE: "too many open files",
};

/** An error of the file system as one sentence with cause and remedy. */
export function pathFailed(path: string, doing: string, cause: unknown): Error {
  if (cause instanceof PathRefused || cause instanceof PathFailed) return cause;
  const code = (cause as NodeJS.ErrnoException).code ?? String(cause);
  const why = CAUSES[code] ? `${CAUSES[code]} (${code})` : code;
  return new PathFailed({ path, doing, why }, { cause });
}

// Linux's O_PATH, which node does not name: a handle that needs no right to read, and opens no device and no pipe.
const O_PATH = 0o10000000;
const DIRECTORY = O_PATH | constants.O_DIRECTORY | constants.O_NOFOLLOW;
const OBJECT = O_PATH | constants.O_NOFOLLOW;

/** The path of an entry of an open folder: what was opened stays what is meant, whatever is renamed meanwhile. */
export const entryOf = (fd: number, name: string) => `/proc/self/fd/${fd}/${name}`;
const itself = (fd: number) => `/proc/self/fd/${fd}`;

/** What metadata a path must have. Null: left as it is. */
export interface Meta {
  mode: number;
  uid: number | null;
  gid: number | null;
}

function refuseComponent(parent: number, name: string, path: string, cause: unknown): Error {
  const code = (cause as NodeJS.ErrnoException).code;
  if (code !== "ENOTDIR" && code !== "ELOOP") return pathFailed(path, "opening its folder", cause);
  const stat = lstatSync(entryOf(parent, name), { throwIfNoEntry: false });
  if (stat?.isSymbolicLink()) {
    const target = readlinkSync(entryOf(parent, name));
    return new PathRefused({
      path,
      found: `its parent "${name}" is a symbolic link to ${target}`,
      remedy: "links are not followed; declare the path behind the link",
    });
  }
  return new PathRefused({
    path,
    found: `its parent "${name}" is not a directory`,
    remedy: "move it away or declare another path",
  });
}

function enter(
  parent: number,
  name: string,
  path: string,
  made: string[] | null,
  here: string,
): number | null {
  const entry = entryOf(parent, name);
  for (;;) {
    try {
      return openSync(entry, DIRECTORY);
    } catch (cause) {
      if ((cause as NodeJS.ErrnoException).code !== "ENOENT")
        throw refuseComponent(parent, name, path, cause);
      if (made === null) return null;
    }
    try {
      mkdirSync(entry, 0o700);
    } catch (cause) {
      if ((cause as NodeJS.ErrnoException).code === "EEXIST") continue;
      throw pathFailed(path, `making its folder ${here}`, cause);
    }
    made.push(here);
    const fd = openSync(entry, DIRECTORY);
    // The exact mode, whatever the umask.
    chmodSync(itself(fd), 0o755);
    return fd;
  }
}

/**
 * Opens the folder that holds `path`, each component below `root` without following links, and hands it over until `use` ends.
 * @param made missing folders are made (0755) and added here; null: `use` gets null when one is missing
 */
export async function withParent<T>(
  root: string,
  path: string,
  made: string[] | null,
  use: (parent: number, name: string) => T | Promise<T>,
): Promise<T | null> {
  const parts = path.slice(root === "/" ? 1 : root.length + 1).split("/");
  const name = parts.pop()!;
  let fd = openSync(root, O_PATH | constants.O_DIRECTORY);
  let here = root === "/" ? "" : root;
  try {
    for (const part of parts) {
      here = `${here}/${part}`;
      const next = enter(fd, part, path, made, here);
      if (next === null) return null;
      closeSync(fd);
      fd = next;
    }
    return await use(fd, name);
  } finally {
    closeSync(fd);
  }
}

/** Refuses what must never be written through or changed: links, and files that have another name. */
export function refuseLinks(path: string, stat: Stats | undefined): void {
  if (stat?.isSymbolicLink())
    throw new PathRefused({
      path,
      found: "is a symbolic link",
      remedy: "remove it, or declare the path behind it",
    });
  if (stat?.isFile() && stat.nlink > 1)
    throw new PathRefused({
      path,
      found: `is a hard link (${stat.nlink} names for one file)`,
      remedy: "remove it, so that no other name is changed with it",
    });
}

/**
 * Sets owner and mode of an existing entry in place. Never wider than both the old and the new mode on the way: first what
 * both allow, then the owner (which clears setuid and setgid), then the exact mode.
 */
export function setMeta(
  parent: number,
  name: string,
  path: string,
  meta: Meta,
  kind: "file" | "directory",
): void {
  const fd = openSync(entryOf(parent, name), kind === "directory" ? DIRECTORY : OBJECT);
  try {
    const stat = fstatSync(fd);
    refuseLinks(path, stat);
    if (kind === "file" && !stat.isFile())
      throw new PathRefused({ path, found: "is not a regular file", remedy: "move it away" });
    const uid = meta.uid ?? stat.uid;
    const gid = meta.gid ?? stat.gid;
    const now = stat.mode & 0o7777;
    if (uid !== stat.uid || gid !== stat.gid) {
      if ((now & meta.mode & 0o777) !== now) chmodSync(itself(fd), now & meta.mode & 0o777);
      chownSync(itself(fd), uid, gid);
      chmodSync(itself(fd), meta.mode);
    } else if (now !== meta.mode) chmodSync(itself(fd), meta.mode);
  } catch (cause) {
    throw pathFailed(path, "setting owner and mode", cause);
  } finally {
    closeSync(fd);
  }
}
