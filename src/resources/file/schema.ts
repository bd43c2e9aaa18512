import { z } from "zod";
import { declaredBase, manifestBase } from "../base.ts";
import { Text } from "../text.ts";
import { AbsolutePath, AccountName, Mode, Name, PlainText } from "../values.ts";

export const FileManifest = z.strictObject({
  type: z.literal("file"),
  ...manifestBase,
  id: Name,
  path: AbsolutePath,
  content: z.union([PlainText, z.array(PlainText)]).optional(),
  source: z.string().optional(),
  secret: Name.optional(),
  template: z.boolean().optional(),
  owner: AccountName.optional(),
  group: AccountName.optional(),
  mode: Mode.default("0644"),
});
export type FileManifest = z.infer<typeof FileManifest>;

/**
 * Where a file's bytes are. `text`: in the declaration, rendered by the host. `base64`: small bytes that are not text.
 * `object`: more than 8 KiB, in the object store under its sha256 (hex); size in bytes.
 */
export const FileBody = z.union([
  z.strictObject({ text: Text }),
  z.strictObject({ base64: z.string() }),
  z.strictObject({ object: z.string(), size: z.number() }),
]);
export type FileBody = z.infer<typeof FileBody>;

export const DeclaredFile = z.strictObject({
  type: z.literal("file"),
  ...declaredBase,
  path: z.string(),
  body: FileBody,
  owner: z.string().nullable(),
  group: z.string().nullable(),
  mode: z.string(),
});
export type DeclaredFile = z.infer<typeof DeclaredFile>;
