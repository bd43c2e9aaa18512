import type { Driver, HostPlace, Observation } from "../driver.ts";
import { AccountConflict, type Accounts, observeEach } from "../user/accounts.ts";
import type { DeclaredGroup } from "./schema.ts";

export interface GroupRecord {
  name: string;
  gid: number | null;
  remove: boolean;
}

const SAME: Observation = { state: "same", fields: [], detail: "" };

/** Groups of the machine. Under another root nothing is done: every observation is `same`, with why. */
export function createGroupDriver(place: HostPlace, accounts: Accounts): Driver<DeclaredGroup, GroupRecord> {
  const mapped: Observation = { ...SAME, kept: `mapped to ${place.invoker.name}` };

  function look(d: DeclaredGroup, found: { gid: number } | undefined): Observation | Error {
    if (!found) return { state: "absent", fields: ["name"], detail: `group ${d.name} is absent` };
    if (d.gid !== null && d.gid !== found.gid)
      return new AccountConflict({
        account: `group ${d.name}`,
        found: `gid ${found.gid}`,
        declared: `gid ${d.gid}`,
      });
    return SAME;
  }

  return {
    type: "group",
    async observe(declared) {
      if (!place.real) return new Map(declared.map((d) => [d.id, mapped]));
      return observeEach(
        declared.map((d) => d.id),
        async () => {
          const found = await accounts.groups(declared.map((d) => d.name));
          return new Map(declared.map((d) => [d.id, look(d, found.get(d.name))]));
        },
      );
    },
    async apply(d, _record, observation) {
      if (!place.real) return { record: { name: d.name, gid: d.gid, remove: d.remove }, changed: false };
      if (observation.state === "absent") {
        const gid = d.gid === null ? ["-r"] : ["-g", String(d.gid)];
        await accounts.change("groupadd", [...gid, d.name], d.name);
      }
      const now = (await accounts.groups([d.name])).get(d.name);
      const record = { name: d.name, gid: now?.gid ?? d.gid, remove: d.remove };
      return { record, changed: observation.state === "absent" };
    },
    async remove(_id, record) {
      if (!place.real) return { kept: null, note: null };
      if (!record.remove)
        return {
          kept: `group ${record.name} stays ("remove" was not set while it was declared)`,
          note: null,
        };
      const now = (await accounts.groups([record.name])).get(record.name);
      if (!now) return { kept: null, note: null };
      if (record.gid !== null && now.gid !== record.gid)
        return { kept: `group ${record.name} now has gid ${now.gid}, not the one made here`, note: null };
      await accounts.change("groupdel", [record.name], record.name, [8]);
      if ((await accounts.groups([record.name])).has(record.name))
        return { kept: `group ${record.name} is the primary group of a user`, note: null };
      return { kept: null, note: null };
    },
  };
}
