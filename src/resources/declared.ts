import { z } from "zod";
import { schemasOf } from "./kinds.ts";

/** One resource as a host receives it: one of the kinds in kinds.ts. */
export const DeclaredResource = z.discriminatedUnion("type", schemasOf("declared"));
export type DeclaredResource = z.infer<typeof DeclaredResource>;
export type ResourceType = DeclaredResource["type"];
