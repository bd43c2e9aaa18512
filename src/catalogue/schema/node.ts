import { z } from "zod";
import { Name } from "../../resources/values.ts";
import { SettingOverrides } from "./mesh.ts";

/** nodes/<name>.json: one machine. `address` is an IP address or a host name. */
export const NodeFile = z.strictObject({
  $schema: z.string().optional(),
  address: z.string().regex(/^[A-Za-z0-9_.:-]{1,253}$/, "must be an IP address or a host name"),
  labels: z.record(z.string().min(1, "must not be empty"), z.string()).default({}),
  modules: z.array(Name).default([]),
  settings: SettingOverrides.default({}),
  mode: z.enum(["enforce", "observe"]).default("enforce"),
  retire: z.boolean().default(false),
});
export type NodeFile = z.infer<typeof NodeFile>;
