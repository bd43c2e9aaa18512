import fs from "node:fs";
import { lstat, mkdir, readdir, readFile, readlink, rename, rm } from "node:fs/promises";
import { join, resolve } from "node:path";
import git from "isomorphic-git";
import { NotACatalogue } from "./errors.ts";
import type { Layout } from "./layout.ts";
import type { UpState } from "./state.ts";

/** Where the watched catalogue is, and what was done to have it there. */
export interface CataloguePlace {
  /** A bare repository or a URL, as it stands in context.json. */
  place: string;
  kind: "made" | "kept" | "bare" | "url";
}

/**
 * A URL and a bare repository are watched where they are. From a plain folder DIR/catalogue.git is made, once: one that is
 * there already is never overwritten, whatever the folder holds now.
 */
export async function placeCatalogue(given: string, ref: string, layout: Layout): Promise<CataloguePlace> {
  if (/^https?:\/\//.test(given)) return { place: given, kind: "url" };
  if (/^[a-z+]+:\/\//.test(given)) {
    throw new NotACatalogue({ place: given.replace(/\/\/[^/@]*@/, "//"), why: "is a URL of another kind" });
  }
  const folder = resolve(given);
  if (isBare(folder)) return { place: folder, kind: "bare" };
  if (fs.existsSync(layout.catalogue)) return { place: layout.catalogue, kind: "kept" };
  if (!fs.existsSync(folder)) throw new NotACatalogue({ place: given, why: "does not exist" });
  if (!fs.existsSync(join(folder, "mesh.json")) && !fs.existsSync(join(folder, "nodes"))) {
    throw new NotACatalogue({ place: given, why: "holds no catalogue" });
  }
  await makeBare(folder, ref, layout);
  return { place: layout.catalogue, kind: "made" };
}

/** The folder, repository or URL that was asked for and that a mesh which is there already leaves unread; null: none. */
export function leftUnread(given: string | null, state: UpState | null, running: boolean): string | null {
  if (given === null || state === null) return null;
  const asked = /^https?:\/\//.test(given) ? given : resolve(given);
  if (asked === state.catalogue || asked === state.from) return null;
  // A repository or a URL is taken by the next start; a folder is read once only.
  if (asked === given || isBare(asked)) return running ? given : null;
  return state.from === null ? null : given;
}

export function isBare(folder: string): boolean {
  return ["HEAD", "objects", "refs"].every((entry) => fs.existsSync(join(folder, entry)));
}

/** Made beside its place and renamed, so that a half-made one is never taken for a catalogue. */
async function makeBare(folder: string, ref: string, layout: Layout): Promise<void> {
  const gitdir = `${layout.catalogue}.new`;
  await rm(gitdir, { recursive: true, force: true });
  await mkdir(layout.dir, { recursive: true });
  await git.init({ fs, gitdir, bare: true, defaultBranch: ref });
  const tree = await writeTree(gitdir, folder, layout.dir);
  const now = { name: "mesh", email: "mesh@localhost" };
  await git.commit({
    fs,
    gitdir,
    tree: tree ?? (await git.writeTree({ fs, gitdir, tree: [] })),
    parent: [],
    ref: `refs/heads/${ref}`,
    message: `Import ${folder}\n`,
    author: now,
    committer: now,
  });
  await rename(gitdir, layout.catalogue);
}

type Entry = { mode: string; path: string; oid: string; type: "blob" | "tree" };

/** Null for a folder without files: Git has no empty folders. */
async function writeTree(gitdir: string, folder: string, leaveOut: string): Promise<string | null> {
  const tree: Entry[] = [];
  for (const name of (await readdir(folder)).sort()) {
    const path = join(folder, name);
    if (name === ".git" || name === ".mesh" || name === "node_modules" || path === leaveOut) continue;
    const stat = await lstat(path);
    if (stat.isDirectory()) {
      const oid = await writeTree(gitdir, path, leaveOut);
      if (oid) tree.push({ mode: "040000", path: name, oid, type: "tree" });
    } else if (stat.isSymbolicLink()) {
      const oid = await git.writeBlob({ fs, gitdir, blob: Buffer.from(await readlink(path)) });
      tree.push({ mode: "120000", path: name, oid, type: "blob" });
    } else if (stat.isFile()) {
      const oid = await git.writeBlob({ fs, gitdir, blob: await readFile(path) });
      tree.push({ mode: stat.mode & 0o100 ? "100755" : "100644", path: name, oid, type: "blob" });
    }
  }
  return tree.length > 0 ? git.writeTree({ fs, gitdir, tree }) : null;
}
