import { existsSync } from "node:fs";
import type { Driver, HostPlace, Observation } from "../driver.ts";
import {
  AccountConflict,
  type Accounts,
  type GroupEntry,
  observeEach,
  type PasswdEntry,
} from "./accounts.ts";
import type { DeclaredUser } from "./schema.ts";

/** `groups`: the extra groups that this host put the user into; others that it is in are someone else's and stay. */
export interface UserRecord {
  name: string;
  uid: number | null;
  home: string | null;
  groups: string[];
  remove: boolean;
}

const SAME: Observation = { state: "same", fields: [], detail: "" };

interface Database {
  users: Map<string, PasswdEntry>;
  groups: Map<string, GroupEntry>;
}

/** What of a declared user differs; a uid or gid that differs is a conflict, since files elsewhere belong to the number. */
function look(d: DeclaredUser, record: UserRecord | null, { users, groups }: Database): Observation | Error {
  const found = users.get(d.name);
  if (!found) return { state: "absent", fields: ["name"], detail: `user ${d.name} is absent` };
  for (const field of ["uid", "gid"] as const) {
    if (d[field] !== null && d[field] !== found[field])
      return new AccountConflict({
        account: `user ${d.name}`,
        found: `${field} ${found[field]}`,
        declared: `${field} ${d[field]}`,
      });
  }
  const details: [string, string][] = [];
  for (const field of ["home", "shell"] as const) {
    if (d[field] !== null && d[field] !== found[field])
      details.push([field, `${field} ${found[field]} -> ${d[field]}`]);
  }
  const { missing, dropped } = membership(d, record, groups);
  if (missing.length > 0) details.push(["groups", `not in ${missing.join(", ")}`]);
  if (dropped.length > 0) details.push(["groups", `still in ${dropped.join(", ")}`]);
  if (details.length === 0) return SAME;
  return {
    state: "differs",
    fields: [...new Set(details.map(([field]) => field))],
    detail: details.map(([, detail]) => detail).join("; "),
  };
}

function membership(d: DeclaredUser, record: UserRecord | null, groups: Map<string, GroupEntry>) {
  const isIn = (group: string) => groups.get(group)?.members.includes(d.name) === true;
  return {
    missing: d.groups.filter((group) => !isIn(group)),
    dropped: (record?.groups ?? []).filter((group) => !d.groups.includes(group) && isIn(group)),
  };
}

/** Without a shell no one can log in by a system account; people's accounts get the machine's default. */
const NOLOGIN = ["/usr/sbin/nologin", "/sbin/nologin", "/bin/false"];
const nologin = () => NOLOGIN.find((path) => existsSync(path)) ?? "/bin/false";

function useraddArgs(d: DeclaredUser, primary: string[]): string[] {
  const shell = d.shell ?? (d.system ? nologin() : null);
  return [
    ...(d.system ? ["-r", "-M"] : ["-m"]),
    ...(d.uid === null ? [] : ["-u", String(d.uid)]),
    ...primary,
    ...(d.home === null ? [] : ["-d", d.home]),
    ...(shell === null ? [] : ["-s", shell]),
    ...(d.groups.length === 0 ? [] : ["-G", d.groups.join(",")]),
    d.name,
  ];
}

async function add(d: DeclaredUser, accounts: Accounts): Promise<void> {
  const own = (await accounts.groups([d.name])).get(d.name);
  if (d.gid !== null) {
    if (!own && !(await accounts.hasGid(d.gid)))
      await accounts.change("groupadd", ["-g", String(d.gid), d.name], d.name);
    return accounts.change("useradd", useraddArgs(d, ["-g", String(d.gid)]), d.name);
  }
  await accounts.change("useradd", useraddArgs(d, own ? ["-g", d.name] : ["-U"]), d.name);
}

async function modify(d: DeclaredUser, record: UserRecord | null, accounts: Accounts): Promise<void> {
  const names = [...d.groups, ...(record?.groups ?? [])];
  const { missing, dropped } = membership(d, record, await accounts.groups(names));
  const found = (await accounts.users([d.name])).get(d.name);
  const args = [
    ...(d.home !== null && d.home !== found?.home ? ["-d", d.home] : []),
    ...(d.shell !== null && d.shell !== found?.shell ? ["-s", d.shell] : []),
    ...(missing.length > 0 ? ["-a", "-G", missing.join(",")] : []),
  ];
  if (args.length > 0) await accounts.change("usermod", [...args, d.name], d.name);
  for (const group of dropped) await accounts.change("gpasswd", ["-d", d.name, group], d.name);
}

/**
 * Users of the machine. Homes are made only for accounts that are not system accounts, and never removed. Extra groups are
 * added, and taken back when no longer declared; memberships that someone else gave are left.
 */
export function createUserDriver(place: HostPlace, accounts: Accounts): Driver<DeclaredUser, UserRecord> {
  const mapped: Observation = { ...SAME, kept: `mapped to ${place.invoker.name}` };
  return {
    type: "user",
    async observe(declared, records) {
      if (!place.real) return new Map(declared.map((d) => [d.id, mapped]));
      const names = declared.flatMap((d) => [...d.groups, ...(records.get(d.id)?.groups ?? [])]);
      return observeEach(
        declared.map((d) => d.id),
        async () => {
          const users = await accounts.users(declared.map((d) => d.name));
          const groups = await accounts.groups(names);
          return new Map(declared.map((d) => [d.id, look(d, records.get(d.id) ?? null, { users, groups })]));
        },
      );
    },
    async apply(d, record, observation) {
      const remembered = { name: d.name, uid: d.uid, home: d.home, groups: [], remove: d.remove };
      if (!place.real) return { record: remembered, changed: false };
      const before = await accounts.groups(d.groups);
      if (observation.state === "absent") await add(d, accounts);
      else if (observation.state === "differs") await modify(d, record, accounts);
      const now = (await accounts.users([d.name])).get(d.name);
      const given = d.groups.filter(
        (group) => record?.groups.includes(group) || !before.get(group)?.members.includes(d.name),
      );
      return {
        record: { ...remembered, uid: now?.uid ?? d.uid, home: now?.home ?? d.home, groups: given },
        changed: observation.state !== "same",
      };
    },
    async remove(_id, record) {
      if (!place.real) return { kept: null, note: null };
      if (!record.remove)
        return { kept: `user ${record.name} stays ("remove" was not set while it was declared)`, note: null };
      const now = (await accounts.users([record.name])).get(record.name);
      if (!now) return { kept: null, note: null };
      if (record.uid !== null && now.uid !== record.uid)
        return { kept: `user ${record.name} now has uid ${now.uid}, not the one made here`, note: null };
      await accounts.change("userdel", [record.name], record.name);
      const left = now.home !== "" && existsSync(now.home) ? `its home ${now.home} is left` : null;
      return { kept: null, note: left };
    },
  };
}
