import { z } from "zod";
import { declaredBase, manifestBase } from "../base.ts";
import { AbsolutePath, AccountName, Mode, Name } from "../values.ts";

export const DirectoryManifest = z.strictObject({
  type: z.literal("directory"),
  ...manifestBase,
  id: Name,
  path: AbsolutePath,
  owner: AccountName.optional(),
  group: AccountName.optional(),
  mode: Mode.default("0755"),
});
export type DirectoryManifest = z.infer<typeof DirectoryManifest>;

/** Owner and group null mean the host's own. A module's `state` is a directory with the id `<module>.state`. */
export const DeclaredDirectory = z.strictObject({
  type: z.literal("directory"),
  ...declaredBase,
  path: z.string(),
  owner: z.string().nullable(),
  group: z.string().nullable(),
  mode: z.string(),
});
export type DeclaredDirectory = z.infer<typeof DeclaredDirectory>;
