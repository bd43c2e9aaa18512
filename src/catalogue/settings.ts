import { isObject } from "./raw.ts";

/** `number` is what a plain default such as 1.5 makes. */
export type SettingType = "string" | "int" | "bool" | "number";

/** The type of a setting as its module declares it: spelled out, or that of its default. Null when it is not a setting. */
export function settingType(declared: unknown): SettingType | null {
  if (isObject(declared)) {
    const { type } = declared;
    return type === "string" || type === "int" || type === "bool" ? type : null;
  }
  if (typeof declared === "string") return "string";
  if (typeof declared === "boolean") return "bool";
  if (typeof declared === "number") return Number.isSafeInteger(declared) ? "int" : "number";
  return null;
}

export function fitsSetting(type: SettingType, value: unknown): boolean {
  if (type === "string") return typeof value === "string";
  if (type === "bool") return typeof value === "boolean";
  return type === "int" ? Number.isSafeInteger(value) : typeof value === "number";
}

export const SETTING_WORDS: Record<SettingType, string> = {
  string: "a string",
  int: "a whole number",
  bool: "true or false",
  number: "a number",
};
