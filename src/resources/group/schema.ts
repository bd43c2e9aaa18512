import { z } from "zod";
import { declaredBase, manifestBase } from "../base.ts";
import { AccountName } from "../values.ts";

export const GroupManifest = z.strictObject({
  type: z.literal("group"),
  ...manifestBase,
  name: AccountName,
  gid: z.int().min(1).max(4294967294).optional(),
  remove: z.boolean().default(false),
});
export type GroupManifest = z.infer<typeof GroupManifest>;

export const DeclaredGroup = z.strictObject({
  type: z.literal("group"),
  ...declaredBase,
  name: z.string(),
  gid: z.number().nullable(),
  remove: z.boolean(),
});
export type DeclaredGroup = z.infer<typeof DeclaredGroup>;
