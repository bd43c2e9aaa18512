import { type Kind, RANK } from "../kind.ts";
import { DeclaredUser, UserManifest } from "./schema.ts";

export const userKind = {
  type: "user",
  manifest: UserManifest,
  declared: DeclaredUser,
  ids: (m) => [{ id: m.id ?? m.name }],
  compile: (m) => [
    {
      id: m.id ?? m.name,
      fields: {
        name: m.name,
        uid: m.uid ?? null,
        gid: m.gid ?? null,
        groups: m.groups,
        home: m.home ?? null,
        shell: m.shell ?? null,
        system: m.system,
        remove: m.remove,
      },
      requires: m.requires,
      rank: RANK.user,
      claims: [{ space: "user", name: m.name }],
    },
  ],
} satisfies Kind<"user", UserManifest>;
