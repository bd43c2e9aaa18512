import { z } from "zod";
import { DirectoryManifest } from "./directory/schema.ts";
import { FileManifest } from "./file/schema.ts";
import { GroupManifest } from "./group/schema.ts";
import { ProcessManifest } from "./process/schema.ts";
import { UserManifest } from "./user/schema.ts";

/** One resource as a module's manifest writes it. A new kind adds its manifest schema here. */
export const ResourceManifest = z.discriminatedUnion("type", [
  GroupManifest,
  UserManifest,
  DirectoryManifest,
  FileManifest,
  ProcessManifest,
]);
export type ResourceManifest = z.infer<typeof ResourceManifest>;
