import { z } from "zod";
import { schemasOf } from "./kinds.ts";

/** One resource as a module's manifest writes it: one of the kinds in kinds.ts. */
export const ResourceManifest = z.discriminatedUnion("type", schemasOf("manifest"));
export type ResourceManifest = z.infer<typeof ResourceManifest>;
