import type { SettingValue } from "../catalogue/schema/mesh.ts";
import type { ModuleFile } from "../catalogue/schema/module.ts";

/** A setting of a module. Without a default it is required; a plain default gives the type ("number" when it is one). */
export interface SettingSpec {
  type: "string" | "int" | "bool" | "number";
  fallback: SettingValue | undefined;
}

export function settingSpecs(manifest: ModuleFile): ReadonlyMap<string, SettingSpec> {
  const specs = new Map<string, SettingSpec>();
  for (const [key, given] of Object.entries(manifest.settings)) {
    if (typeof given === "object") specs.set(key, { type: given.type, fallback: given.default });
    else specs.set(key, { type: plainType(given), fallback: given });
  }
  return specs;
}

function plainType(value: SettingValue): SettingSpec["type"] {
  if (typeof value === "string") return "string";
  return typeof value === "boolean" ? "bool" : "number";
}

/** Why a value is not one of its setting, null when it is. */
export function wrongValue(spec: SettingSpec, value: SettingValue): string | null {
  const fits = {
    string: typeof value === "string",
    bool: typeof value === "boolean",
    number: typeof value === "number",
    int: Number.isSafeInteger(value),
  }[spec.type];
  if (!fits) return `found ${JSON.stringify(value)}, a ${typeof value}; it takes ${KIND_WORDS[spec.type]}`;
  if (typeof value === "string" && value.includes("\u0000")) {
    return "found a zero byte (\\u0000), which no file of settings, argument or variable can hold";
  }
  return null;
}

const KIND_WORDS = {
  string: "a string",
  int: "an int (a whole number)",
  bool: "a bool (true or false)",
  number: "a number",
};
