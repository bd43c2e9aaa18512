/** Edit distance with neighbouring letters swapped counted as one, at most `limit`; `limit + 1` stands for more. */
function distance(a: string, b: string, limit: number): number {
  if (Math.abs(a.length - b.length) > limit) return limit + 1;
  let before: number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const cost = a[i - 1] === b[j - 1] ? 0 : 1;
      let best = Math.min(last[j]! + 1, row[j - 1]! + 1, last[j - 1]! + cost);
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1])
        best = Math.min(best, before[j - 2]! + 1);
      row.push(best);
    }
    before = last;
    last = row;
  }
  return last[b.length]!;
}

/** The known name that was probably meant, or null when none is near. Ties go to the first by name. */
export function nearest(found: string, known: Iterable<string>): string | null {
  const limit = Math.max(1, Math.floor(Math.min(found.length, 30) / 3));
  const wanted = found.slice(0, 100).toLowerCase();
  let best: string | null = null;
  let bestDistance = limit + 1;
  for (const name of known) {
    const d = distance(wanted, name.slice(0, 100).toLowerCase(), limit);
    if (d < bestDistance || (d === bestDistance && best !== null && name < best)) {
      best = name;
      bestDistance = d;
    }
  }
  return bestDistance <= limit ? best : null;
}

/** `; did you mean "web"?` and `; known: base, web` after it (at most 12 of them). */
export function suggestion(found: string, known: Iterable<string>, what = "known"): string {
  const names = [...known].sort();
  const near = nearest(found, names);
  const shown = names.slice(0, 12).join(", ");
  const list = names.length === 0 ? "none" : names.length > 12 ? `${shown}, … (${names.length})` : shown;
  return `${near === null ? "" : `; did you mean ${JSON.stringify(near)}?`}; ${what}: ${list}`;
}
