import { z } from "zod";
import { ResourceManifest } from "../../resources/manifest.ts";
import { AccountName, Duration, Mode, Name } from "../../resources/values.ts";
import { SettingValue } from "./mesh.ts";

const TypedSetting = z.strictObject({
  type: z.enum(["string", "int", "bool"]),
  default: SettingValue.optional(),
});

export const BundleManifest = z.strictObject({
  from: z.string(),
  run: z.array(z.string()).optional(),
  output: z.string(),
  system: z.enum(["any", "arch"]).default("any"),
  loads: z.boolean().default(false),
  network: z.boolean().default(false),
  timeout: Duration.prefault("10m"),
});

/** modules/<name>/module.json. */
export const ModuleFile = z.strictObject({
  $schema: z.string().optional(),
  name: Name,
  description: z.string().default(""),
  tier: z.union([z.literal(0), z.literal(1), z.literal(2)]).default(2),
  requires: z.array(Name).default([]),
  seats: z.record(Name, z.strictObject({ port: Name })).default({}),
  ports: z.record(Name, z.union([z.int().min(1).max(65535), z.literal("auto")])).default({}),
  settings: z.record(Name, z.union([SettingValue, TypedSetting])).default({}),
  state: z
    .strictObject({
      owner: AccountName.optional(),
      group: AccountName.optional(),
      mode: Mode.default("0755"),
    })
    .optional(),
  bundles: z.record(Name, BundleManifest).default({}),
  resources: z.array(ResourceManifest).default([]),
});
export type ModuleFile = z.infer<typeof ModuleFile>;
