import { statSync } from "node:fs";
import { meshError } from "../../errors.ts";
import type { Exec } from "../../io/exec.ts";

export class UserDatabaseSilent extends meshError(
  "user-database-silent",
  "retry",
  (f: { database: string; code: number | null; said: string }) =>
    `getent ${f.database} exited ${f.code ?? "by a signal"}${f.said ? ` (${f.said})` : ""}: the user database did not answer; see nsswitch.conf and what it names`,
) {}

export class AccountToolFailed extends meshError(
  "account-tool-failed",
  "retry",
  (f: { tool: string; account: string; code: number | null; said: string }) =>
    `${f.tool} ${f.account} exited ${f.code ?? "by a signal"}${f.said ? `: ${f.said}` : ""}`,
) {}

export class AccountConflict extends meshError(
  "account-conflict",
  "retry",
  (f: { account: string; found: string; declared: string }) =>
    `${f.account} exists with ${f.found}, declared is ${f.declared}; it is never changed silently: declare what is there, or change the account by hand`,
) {}

export class NoSuchAccount extends meshError(
  "no-such-account",
  "retry",
  (f: { database: string; name: string }) =>
    `no ${f.database === "passwd" ? "user" : "group"} ${f.name} on this machine; declare it in a module that is applied before`,
) {}

export interface PasswdEntry {
  name: string;
  uid: number;
  gid: number;
  home: string;
  shell: string;
}
export interface GroupEntry {
  name: string;
  gid: number;
  members: string[];
}

/** The machine's user database, asked in batches and remembered until /etc/passwd or /etc/group moves or `forget` is called. */
export interface Accounts {
  /** Names that are absent are not in the map. Throws UserDatabaseSilent, which never means "absent". */
  users(names: Iterable<string>): Promise<Map<string, PasswdEntry>>;
  groups(names: Iterable<string>): Promise<Map<string, GroupEntry>>;
  /** Whether any group has this number. */
  hasGid(gid: number): Promise<boolean>;
  forget(): void;
  /** Runs a tool that changes accounts; throws AccountToolFailed on any exit code not in `fine`. */
  change(tool: string, args: string[], account: string, fine?: number[]): Promise<void>;
}

const BATCH = 200;
const FILES = ["/etc/passwd", "/etc/group", "/etc/nsswitch.conf"];

function stamp(): string {
  return FILES.map((file) => {
    const stat = statSync(file, { throwIfNoEntry: false });
    return stat ? `${stat.ino}:${stat.size}:${stat.mtimeMs}:${stat.ctimeMs}` : "-";
  }).join(" ");
}

function parsePasswd(f: string[]): PasswdEntry {
  return { name: f[0]!, uid: Number(f[2]), gid: Number(f[3]), home: f[5] ?? "", shell: f[6] ?? "" };
}
function parseGroup(f: string[]): GroupEntry {
  return { name: f[0]!, gid: Number(f[2]), members: (f[3] ?? "").split(",").filter(Boolean) };
}

/** Exit codes of getent: 0 all found, 2 some are absent; any other is no answer. */
async function getent<T extends { name: string }>(
  exec: Exec,
  database: string,
  names: string[],
  parse: (fields: string[]) => T,
): Promise<Map<string, T>> {
  const found = new Map<string, T>();
  for (let at = 0; at < names.length; at += BATCH) {
    const ran = await exec("getent", [database, ...names.slice(at, at + BATCH)]);
    if (ran.code !== 0 && ran.code !== 2)
      throw new UserDatabaseSilent({ database, code: ran.code, said: ran.stderr.trim().slice(0, 200) });
    for (const line of ran.stdout.split("\n")) {
      if (line === "") continue;
      const entry = parse(line.split(":"));
      found.set(entry.name, entry);
    }
  }
  return found;
}

export function createAccounts(exec: Exec): Accounts {
  const known = {
    stamp: "",
    passwd: new Map<string, PasswdEntry | null>(),
    group: new Map<string, GroupEntry | null>(),
  };

  async function lookUp<T extends { name: string }>(
    database: "passwd" | "group",
    cache: () => Map<string, T | null>,
    names: Iterable<string>,
    parse: (fields: string[]) => T,
  ): Promise<Map<string, T>> {
    const now = stamp();
    if (now !== known.stamp) {
      known.passwd = new Map();
      known.group = new Map();
      known.stamp = now;
    }
    const asked = [...new Set(names)];
    const unknown = asked.filter((name) => !cache().has(name));
    const into = cache();
    if (unknown.length > 0) {
      const found = await getent(exec, database, unknown, parse);
      for (const name of unknown) into.set(name, found.get(name) ?? null);
    }
    const answer = new Map<string, T>();
    for (const name of asked) {
      const entry = into.get(name);
      if (entry) answer.set(name, entry);
    }
    return answer;
  }

  const forget = () => {
    known.stamp = "";
  };
  return {
    users: (names) => lookUp("passwd", () => known.passwd, names, parsePasswd),
    groups: (names) => lookUp("group", () => known.group, names, parseGroup),
    hasGid: async (gid) => (await getent(exec, "group", [String(gid)], parseGroup)).size > 0,
    forget,
    async change(tool, args, account, fine = []) {
      try {
        const ran = await exec(tool, args);
        if (ran.code !== 0 && !fine.includes(ran.code ?? -1)) {
          const said = ran.stderr
            .trim()
            .replace(/\s*\n\s*/g, "; ")
            .slice(0, 300);
          throw new AccountToolFailed({ tool, account, code: ran.code, said });
        }
      } finally {
        forget();
      }
    },
  };
}

/** The same error for each resource, when the user database did not answer: one bad lookup is never "absent". */
export async function observeEach<T>(
  ids: readonly string[],
  look: () => Promise<ReadonlyMap<string, T | Error>>,
): Promise<ReadonlyMap<string, T | Error>> {
  try {
    return await look();
  } catch (error) {
    const cause = error as Error;
    return new Map(ids.map((id) => [id, cause]));
  }
}
