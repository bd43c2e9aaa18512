import { nearest } from "../catalogue/nearest.ts";

/** "known: a, b; did you mean b?" for the end of a message. */
export function knownNames(wrong: string, known: Iterable<string>): string {
  const names = [...new Set(known)].sort();
  if (names.length === 0) return "there are none";
  const near = nearest(wrong, names);
  const more = names.length > 12 ? ` and ${names.length - 12} more` : "";
  return `known: ${names.slice(0, 12).join(", ")}${more}${near ? `; did you mean ${near}?` : ""}`;
}
