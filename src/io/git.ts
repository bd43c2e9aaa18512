import { execFile } from "node:child_process";
import { readFileSync, statSync } from "node:fs";
import { join, resolve } from "node:path";
import { BatchGit } from "./git-batch.ts";
import { IsomorphicGit } from "./git-isomorphic.ts";
import { type GitReader, GitUnreadable } from "./git-objects.ts";

export type { Commit, EntryKind, GitReader, TreeEntry } from "./git-objects.ts";
export { GitUnreadable, ObjectMissing, RefMissing } from "./git-objects.ts";

/** Whether git is on PATH. */
export function haveGit(): Promise<boolean> {
  return new Promise((done) => execFile("git", ["--version"], { timeout: 10_000 }, (error) => done(!error)));
}

/**
 * The folder with `objects` and `refs` of what is at `path`: a bare repository, a work tree, or a linked work tree.
 * Null when `path` is no repository.
 */
export function gitDirOf(path: string): string | null {
  const top = resolve(path);
  if (isGitDir(top)) return top;
  const inner = join(top, ".git");
  const kind = statSync(inner, { throwIfNoEntry: false });
  if (kind?.isDirectory()) return isGitDir(inner) ? inner : null;
  if (!kind?.isFile()) return null;
  const linked = /^gitdir: (.+)$/m.exec(readFileSync(inner, "utf8"))?.[1];
  if (!linked) return null;
  const own = resolve(top, linked);
  const common = firstLine(join(own, "commondir"));
  const dir = common ? resolve(own, common) : own;
  return isGitDir(dir) ? dir : null;
}

function isGitDir(path: string): boolean {
  const at = (name: string) => statSync(join(path, name), { throwIfNoEntry: false });
  // With the reftable format `refs` is a stub, but HEAD, objects and refs are there in every repository.
  return Boolean(at("HEAD")?.isFile() && at("objects")?.isDirectory() && at("refs"));
}

function firstLine(file: string): string | null {
  try {
    return readFileSync(file, "utf8").split("\n", 1)[0] ?? null;
  } catch {
    return null;
  }
}

/**
 * Opens a repository for reading: through git when it is on PATH, else without it.
 * @throws GitUnreadable when `path` is no repository
 */
export async function openGit(
  path: string,
  options: { prefer?: "git" | "isomorphic" } = {},
): Promise<GitReader> {
  const gitDir = gitDirOf(path);
  if (!gitDir) throw new GitUnreadable({ repository: resolve(path), why: "it is not a Git repository" });
  const withGit = options.prefer ? options.prefer === "git" : await haveGit();
  return withGit ? new BatchGit(gitDir) : new IsomorphicGit(gitDir);
}
