import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, statSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import { promisify } from "node:util";
import { meshError, messageOf } from "../errors.ts";

const run = promisify(execFile);

/** Postgres refuses to run as root: the account it runs as then. Null elsewhere: it runs as whoever calls. */
export interface DatabaseAccount {
  name: string;
  uid: number;
  gid: number;
}

export class DatabaseAccountMissing extends meshError(
  "database-account-missing",
  "stalled",
  (f: { name: string; why: string }) =>
    `account "${f.name}" is not there and could not be added (${f.why}); Postgres does not run as root: add it with \`useradd --system ${f.name}\`, or name an existing database with --store`,
) {}

/** The account for the database when root calls, made when it is absent. */
export async function databaseAccount(name = "postgres"): Promise<DatabaseAccount | null> {
  if (process.getuid?.() !== 0) return null;
  const found = await lookUp(name);
  if (found) return found;
  try {
    await run("useradd", ["--system", "--user-group", "--no-create-home", "--shell", "/bin/sh", name]);
  } catch (cause) {
    // Another `mesh up` may have added it in between.
    const added = await lookUp(name);
    if (added) return added;
    throw new DatabaseAccountMissing({ name, why: messageOf(cause) }, { cause });
  }
  const added = await lookUp(name);
  if (!added) throw new DatabaseAccountMissing({ name, why: "still absent after useradd" });
  return added;
}

async function lookUp(name: string): Promise<DatabaseAccount | null> {
  const passwd = await readFile("/etc/passwd", "utf8").catch(() => "");
  const line = passwd.split("\n").find((entry) => entry.startsWith(`${name}:`));
  const fields = (line ?? (await getent(name)))?.split(":");
  return fields ? { name, uid: Number(fields[2]), gid: Number(fields[3]) } : null;
}

async function getent(name: string): Promise<string | null> {
  try {
    return (await run("getent", ["passwd", name])).stdout.trim() || null;
  } catch {
    return null;
  }
}

/** Whether `account` may enter every folder down to `path` (the part of it that exists). */
export function reachableBy(path: string, account: DatabaseAccount | null): boolean {
  if (!account) return true;
  for (let at = resolve(path); ; at = dirname(at)) {
    if (existsSync(at) && !mayEnter(at, account)) return false;
    if (dirname(at) === at) return true;
  }
}

function mayEnter(path: string, account: DatabaseAccount): boolean {
  const { uid, gid, mode } = statSync(path);
  if (uid === account.uid) return (mode & 0o100) !== 0;
  if (gid === account.gid) return (mode & 0o010) !== 0;
  return (mode & 0o001) !== 0;
}

/**
 * Where the database of the mesh in `dir` lives: in `dir`, or, where the database's account cannot get there
 * (a folder under /root), under /var/lib/mesh-up, by a name that is always the same for `dir`.
 */
export function placeForDatabase(dir: string, account: DatabaseAccount | null): string {
  const at = resolve(dir);
  if (reachableBy(at, account)) return at;
  return `/var/lib/mesh-up/${createHash("sha256").update(at).digest("hex").slice(0, 12)}`;
}
