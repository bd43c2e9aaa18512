import type { Meta } from "../io/paths.ts";
import type { HostPlace } from "./driver.ts";
import { type Accounts, NoSuchAccount } from "./user/accounts.ts";

export interface Owned {
  owner: string | null;
  group: string | null;
  mode: string;
}

/**
 * The numbers of a declared owner and group. Without them it is the host's own; under another root owners are not set
 * (null). An account that is not there yet is "unknown", which matches nothing.
 */
export async function ownersOf(
  place: HostPlace,
  accounts: Accounts,
  declared: readonly Owned[],
): Promise<(d: Owned) => { uid: number | null | "unknown"; gid: number | null | "unknown" }> {
  if (!place.real) return () => ({ uid: null, gid: null });
  const named = (key: "owner" | "group") => declared.flatMap((d) => d[key] ?? []);
  const [owners, groups] = [named("owner"), named("group")];
  const users = owners.length > 0 ? await accounts.users(owners) : new Map();
  const gids = groups.length > 0 ? await accounts.groups(groups) : new Map();
  return (d) => ({
    uid: d.owner === null ? place.invoker.uid : (users.get(d.owner)?.uid ?? "unknown"),
    gid: d.group === null ? place.invoker.gid : (gids.get(d.group)?.gid ?? "unknown"),
  });
}

/** What the path must have; throws NoSuchAccount. */
export async function metaOf(place: HostPlace, accounts: Accounts, d: Owned): Promise<Meta> {
  const { uid, gid } = (await ownersOf(place, accounts, [d]))(d);
  if (uid === "unknown") throw new NoSuchAccount({ database: "passwd", name: d.owner! });
  if (gid === "unknown") throw new NoSuchAccount({ database: "group", name: d.group! });
  return { uid, gid, mode: Number.parseInt(d.mode, 8) };
}

/** The differences of owner, group and mode: field and one line for people each. */
export function metaDifferences(
  d: Owned,
  wanted: { uid: number | null | "unknown"; gid: number | null | "unknown" },
  stat: { uid: number; gid: number; mode: number },
): [string, string][] {
  const differences: [string, string][] = [];
  if (wanted.uid !== null && wanted.uid !== stat.uid)
    differences.push(["owner", `owner ${stat.uid} -> ${d.owner ?? wanted.uid}`]);
  if (wanted.gid !== null && wanted.gid !== stat.gid)
    differences.push(["group", `group ${stat.gid} -> ${d.group ?? wanted.gid}`]);
  const mode = stat.mode & 0o7777;
  if (mode !== Number.parseInt(d.mode, 8)) {
    const octal = mode.toString(8).padStart(4, "0");
    differences.push(["mode", `mode ${octal} -> ${d.mode}`]);
  }
  return differences;
}
