import { z } from "zod";
import { Name } from "../../resources/values.ts";
import { SettingOverrides } from "./mesh.ts";

const LabelMatch = z.record(z.string().min(1, "must not be empty"), z.array(z.string()));

/** groups/<name>.json: what nodes with given labels get. Every key of `match` must hold one of its values. */
export const GroupFile = z.strictObject({
  $schema: z.string().optional(),
  match: LabelMatch.default({}),
  except: LabelMatch.default({}),
  modules: z.array(Name).default([]),
  settings: SettingOverrides.default({}),
});
export type GroupFile = z.infer<typeof GroupFile>;
