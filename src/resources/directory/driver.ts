import type { Files } from "../../io/files.ts";
import type { Driver, HostPlace, Observation } from "../driver.ts";
import { metaDifferences, metaOf, ownersOf } from "../owner.ts";
import { type Accounts, observeEach } from "../user/accounts.ts";
import type { DeclaredDirectory } from "./schema.ts";

/** `parents`: real paths of folders that had to be made above it. */
export interface DirectoryRecord {
  path: string;
  parents: string[];
}

const SAME: Observation = { state: "same", fields: [], detail: "" };

export function createDirectoryDriver(
  place: HostPlace,
  accounts: Accounts,
  files: Files,
): Driver<DeclaredDirectory, DirectoryRecord> {
  function look(
    d: DeclaredDirectory,
    wanted: { uid: number | null | "unknown"; gid: number | null | "unknown" },
  ): Observation {
    const stat = files.stat(place.realPath(d.path));
    if (!stat) return { state: "absent", fields: ["path"], detail: `${d.path} is absent` };
    if (!stat.isDirectory())
      return { state: "differs", fields: ["path"], detail: `${d.path} is there and is not a directory` };
    const differences = metaDifferences(d, wanted, stat);
    if (differences.length === 0) return SAME;
    return {
      state: "differs",
      fields: differences.map(([field]) => field),
      detail: differences.map(([, detail]) => detail).join("; "),
    };
  }

  return {
    type: "directory",
    observe: (declared) =>
      observeEach(
        declared.map((d) => d.id),
        async () => {
          const wanted = await ownersOf(place, accounts, declared);
          return new Map(declared.map((d) => [d.id, look(d, wanted(d))]));
        },
      ),
    async apply(d, record, observation) {
      if (observation.state === "same")
        return { record: { path: d.path, parents: record?.parents ?? [] }, changed: false };
      const meta = await metaOf(place, accounts, d);
      const parents = await files.makeDirectory(place.realPath(d.path), meta);
      return { record: { path: d.path, parents: [...(record?.parents ?? []), ...parents] }, changed: true };
    },
    async remove(_id, record) {
      const outcome = await files.removeDirectory(place.realPath(record.path));
      const kept = outcome === "not-empty" ? `${record.path} is not empty and is left` : null;
      return { kept, note: null };
    },
  };
}
