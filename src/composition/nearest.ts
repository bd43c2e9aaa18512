/** The known name nearest to a wrong one, when it is near enough to be meant: at most a third of its letters differ (two at least). */
export function nearest(wrong: string, known: Iterable<string>): string | null {
  let best: string | null = null;
  let least = Math.max(2, Math.floor(wrong.length / 3)) + 1;
  for (const name of [...known].sort()) {
    const d = distance(wrong, name, least);
    if (d < least) {
      least = d;
      best = name;
    }
  }
  return best;
}

/** "known are a, b; did you mean b?" for the end of a message. */
export function knownNames(wrong: string, known: Iterable<string>): string {
  const names = [...new Set(known)].sort();
  if (names.length === 0) return "there are none";
  const near = nearest(wrong, names);
  const shown =
    names.length > 12 ? `${names.slice(0, 12).join(", ")} and ${names.length - 12} more` : names.join(", ");
  return `known: ${shown}${near ? `; did you mean ${near}?` : ""}`;
}

function distance(a: string, b: string, limit: number): number {
  if (Math.abs(a.length - b.length) >= limit) return limit;
  let row = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const swap = (row[j - 1] as number) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(swap, (row[j] as number) + 1, (next[j - 1] as number) + 1));
    }
    row = next;
  }
  return row[b.length] as number;
}
