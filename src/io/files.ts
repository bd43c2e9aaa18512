import { createHash } from "node:crypto";
import { constants, lstatSync, mkdirSync, rmdirSync, type Stats, unlinkSync } from "node:fs";
import { type FileHandle, open, rename } from "node:fs/promises";
import type { Fault } from "./faults.ts";
import { entryOf, type Meta, PathRefused, pathFailed, refuseLinks, setMeta, withParent } from "./paths.ts";

/**
 * The files of a machine, as root changes them: nothing below `root` is reached through a link, and no state between
 * the old and the new is ever visible.
 */
export interface Files {
  /** By its path, without opening; undefined when absent. */
  stat(path: string): Stats | undefined;
  /** sha256 (hex) and stat of a regular file; null when absent. */
  hash(path: string): Promise<{ sha: string; stat: Stats } | null>;
  read(path: string): Promise<Buffer | null>;
  /** Whole or not at all. Returns the folders it made. */
  write(path: string, bytes: Uint8Array, meta: Meta): Promise<string[]>;
  setMeta(path: string, meta: Meta, kind: "file" | "directory"): Promise<void>;
  /** Makes a folder, or sets owner and mode of the one there. Returns the parents it made. */
  makeDirectory(path: string, meta: Meta): Promise<string[]>;
  /** False when it was not there. */
  removeFile(path: string): Promise<boolean>;
  removeDirectory(path: string): Promise<"removed" | "absent" | "not-empty">;
  /** Removes what a killed write of this path left behind. */
  clean(path: string): Promise<void>;
}

/** One name per target, so that the next write of the same path, or a clean, finds what a killed one left. */
const tempOf = (name: string) => `.mesh-${createHash("sha256").update(name).digest("hex").slice(0, 16)}.tmp`;

/** Below a file there is nothing: that is absent too, and writing there says why it cannot be. */
function lstat(path: string): Stats | undefined {
  try {
    return lstatSync(path, { throwIfNoEntry: false });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOTDIR") return undefined;
    throw error;
  }
}

async function hashHandle(handle: FileHandle): Promise<string> {
  const hash = createHash("sha256");
  const buffer = Buffer.allocUnsafe(64 * 1024);
  for (;;) {
    const { bytesRead } = await handle.read(buffer, 0, buffer.length, null);
    if (bytesRead === 0) return hash.digest("hex");
    hash.update(buffer.subarray(0, bytesRead));
  }
}

function unlinkIfThere(path: string): boolean {
  try {
    unlinkSync(path);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return false;
    throw error;
  }
}

/** Opens a regular file for reading; a pipe or device is neither waited for nor opened for good. */
async function openRegular<T>(
  root: string,
  path: string,
  use: (handle: FileHandle, stat: Stats) => Promise<T>,
): Promise<T | null> {
  return withParent(root, path, null, async (parent, name) => {
    const entry = entryOf(parent, name);
    const before = lstat(entry);
    if (before === undefined) return null;
    refuseLinks(path, before);
    if (!before.isFile())
      throw new PathRefused({ path, found: "is not a regular file", remedy: "move it away" });
    let handle: FileHandle;
    try {
      handle = await open(entry, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    } catch (cause) {
      throw pathFailed(path, "reading", cause);
    }
    try {
      return await use(handle, await handle.stat());
    } catch (cause) {
      throw pathFailed(path, "reading", cause);
    } finally {
      await handle.close();
    }
  });
}

async function writeWhole(
  parent: number,
  name: string,
  path: string,
  bytes: Uint8Array,
  meta: Meta,
  fault: Fault,
): Promise<void> {
  const target = entryOf(parent, name);
  const temp = entryOf(parent, tempOf(name));
  const there = lstat(target);
  refuseLinks(path, there);
  if (there && !there.isFile())
    throw new PathRefused({ path, found: "is there and is not a regular file", remedy: "move it away" });
  let handle: FileHandle | null = null;
  try {
    unlinkIfThere(temp);
    const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;
    handle = await open(temp, flags, 0o600);
    await handle.writeFile(bytes);
    fault("file-written");
    // Owner first: chown clears setuid and setgid. Until the last chmod nobody but the owner can read it.
    if (meta.uid !== null || meta.gid !== null) {
      const stat = await handle.stat();
      await handle.chown(meta.uid ?? stat.uid, meta.gid ?? stat.gid);
    }
    await handle.chmod(meta.mode);
    await handle.sync();
    fault("file-before-rename");
    await rename(temp, target);
    fault("file-renamed");
  } catch (cause) {
    try {
      unlinkIfThere(temp);
    } catch {
      // The write's own error says more.
    }
    throw pathFailed(path, "writing", cause);
  } finally {
    await handle?.close();
  }
}

function makeOne(parent: number, name: string, path: string, meta: Meta): void {
  const entry = entryOf(parent, name);
  const there = lstat(entry);
  refuseLinks(path, there);
  if (there && !there.isDirectory())
    throw new PathRefused({ path, found: "is there and is not a directory", remedy: "move it away" });
  try {
    if (!there) mkdirSync(entry, 0o700);
  } catch (cause) {
    throw pathFailed(path, "making the directory", cause);
  }
  setMeta(parent, name, path, meta, "directory");
}

function removeOneDirectory(entry: string, path: string): "removed" | "absent" | "not-empty" {
  try {
    rmdirSync(entry);
    return "removed";
  } catch (cause) {
    const code = (cause as NodeJS.ErrnoException).code;
    if (code === "ENOENT" || code === "ENOTDIR") return "absent";
    if (code === "ENOTEMPTY" || code === "EEXIST" || code === "EBUSY") return "not-empty";
    throw pathFailed(path, "removing the directory", cause);
  }
}

/** @param root a real path ("/" or a folder without links in it); every path given must be below it */
export function createFiles(root: string, fault: Fault): Files {
  return {
    stat: lstat,
    hash: (path) =>
      openRegular(root, path, async (handle, stat) => ({ sha: await hashHandle(handle), stat })),
    read: (path) => openRegular(root, path, (handle) => handle.readFile()),
    async write(path, bytes, meta) {
      const made: string[] = [];
      await withParent(root, path, made, (parent, name) =>
        writeWhole(parent, name, path, bytes, meta, fault),
      );
      return made;
    },
    async setMeta(path, meta, kind) {
      await withParent(root, path, null, (parent, name) => setMeta(parent, name, path, meta, kind));
    },
    async makeDirectory(path, meta) {
      const made: string[] = [];
      await withParent(root, path, made, (parent, name) => makeOne(parent, name, path, meta));
      return made;
    },
    async removeFile(path) {
      const gone = await withParent(root, path, null, (parent, name) => {
        const entry = entryOf(parent, name);
        const there = lstat(entry);
        if (there?.isDirectory())
          throw new PathRefused({ path, found: "is now a directory", remedy: "remove it by hand" });
        try {
          return unlinkIfThere(entry);
        } catch (cause) {
          throw pathFailed(path, "removing", cause);
        }
      });
      return gone === true;
    },
    async removeDirectory(path) {
      const done = await withParent(root, path, null, (parent, name) =>
        removeOneDirectory(entryOf(parent, name), path),
      );
      return done ?? "absent";
    },
    async clean(path) {
      await withParent(root, path, null, (parent, name) => unlinkIfThere(entryOf(parent, tempOf(name))));
    },
  };
}
