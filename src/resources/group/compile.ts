import { type Kind, RANK } from "../kind.ts";
import { DeclaredGroup, GroupManifest } from "./schema.ts";

export const groupKind = {
  type: "group",
  manifest: GroupManifest,
  declared: DeclaredGroup,
  ids: (m) => [{ id: m.id ?? m.name }],
  compile: (m) => [
    {
      id: m.id ?? m.name,
      fields: { name: m.name, gid: m.gid ?? null, remove: m.remove },
      requires: m.requires,
      rank: RANK.group,
      claims: [{ space: "group", name: m.name }],
    },
  ],
} satisfies Kind<"group", GroupManifest>;
