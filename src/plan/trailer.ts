import type { GuardHit } from "./model.ts";

const TRAILER = /^[ \t]*mesh-confirm[ \t]*:(.*)$/gim;

/** The items of every `Mesh-Confirm:` line of a commit message ("emptied web-1", "removals 34", "restarts 12", "history"). */
export function parseConfirmTrailer(message: string): string[] {
  return [...message.matchAll(TRAILER)]
    .flatMap((line) => line[1]!.split(","))
    .map(tidy)
    .filter((item) => item !== "");
}

/** True when the items say everything that the guard says, with the same numbers. More than it says does no harm. */
export function confirms(items: readonly string[], hits: readonly GuardHit[]): boolean {
  const said = new Set(items.map(tidy));
  return hits.every((hit) => said.has(tidy(hit.item)));
}

/** The trailer that lets these hits go, or null when there are none. */
export function confirmLine(hits: readonly GuardHit[]): string | null {
  return hits.length === 0 ? null : `Mesh-Confirm: ${hits.map((hit) => hit.item).join(", ")}`;
}

function tidy(item: string): string {
  return item.trim().replace(/\s+/g, " ").toLowerCase();
}
