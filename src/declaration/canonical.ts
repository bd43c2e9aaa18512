import { createHash } from "node:crypto";

/**
 * JSON with the keys of every object sorted by UTF-16 code unit and no white space: equal values give equal bytes.
 * Keys whose value is undefined are left out, as JSON.stringify does.
 */
export function canonicalJson(value: unknown): string {
  if (value === null || typeof value !== "object") return JSON.stringify(value) ?? "null";
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(",")}]`;
  const object = value as Record<string, unknown>;
  const parts: string[] = [];
  for (const key of Object.keys(object).sort()) {
    const member = object[key];
    if (member !== undefined) parts.push(`${JSON.stringify(key)}:${canonicalJson(member)}`);
  }
  return `{${parts.join(",")}}`;
}

/** The revision of a declaration's body: sha256, hex, over its canonical JSON. */
export function revisionOf(body: unknown): string {
  return createHash("sha256").update(canonicalJson(body)).digest("hex");
}
