import { z } from "zod";
import { DeclaredDirectory } from "./directory/schema.ts";
import { DeclaredFile } from "./file/schema.ts";
import { DeclaredGroup } from "./group/schema.ts";
import { DeclaredProcess } from "./process/schema.ts";
import { DeclaredUser } from "./user/schema.ts";

/** One resource as a host receives it. A new kind adds its declared schema here. */
export const DeclaredResource = z.discriminatedUnion("type", [
  DeclaredGroup,
  DeclaredUser,
  DeclaredDirectory,
  DeclaredFile,
  DeclaredProcess,
]);
export type DeclaredResource = z.infer<typeof DeclaredResource>;
export type ResourceType = DeclaredResource["type"];
