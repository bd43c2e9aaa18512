import { z } from "zod";
import { declaredBase, manifestBase } from "../base.ts";
import { AccountName, AccountPath } from "../values.ts";

export const UserManifest = z.strictObject({
  type: z.literal("user"),
  ...manifestBase,
  name: AccountName,
  uid: z.int().min(1).max(4294967294).optional(),
  gid: z.int().min(1).max(4294967294).optional(),
  groups: z.array(AccountName).default([]),
  home: AccountPath.optional(),
  shell: AccountPath.optional(),
  system: z.boolean().default(true),
  remove: z.boolean().default(false),
});
export type UserManifest = z.infer<typeof UserManifest>;

export const DeclaredUser = z.strictObject({
  type: z.literal("user"),
  ...declaredBase,
  name: z.string(),
  uid: z.number().nullable(),
  gid: z.number().nullable(),
  groups: z.array(z.string()),
  home: z.string().nullable(),
  shell: z.string().nullable(),
  system: z.boolean(),
  remove: z.boolean(),
});
export type DeclaredUser = z.infer<typeof DeclaredUser>;
