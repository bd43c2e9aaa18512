/** Thrown away by callers into a problem: the names along a cycle, the first again at the end. */
export interface Ordered<T> {
  order: T[];
  cycle: string[] | null;
}

/**
 * Items in the given order, except that whatever one requires comes before it. Names that are not among the items are
 * passed over. On a cycle the rest is still ordered, and one cycle is told.
 */
export function orderBy<T>(
  items: readonly T[],
  nameOf: (item: T) => string,
  requiresOf: (item: T) => readonly string[],
): Ordered<T> {
  const byName = new Map(items.map((item) => [nameOf(item), item]));
  const done = new Set<string>();
  const path: string[] = [];
  const order: T[] = [];
  let cycle: string[] | null = null;
  const visit = (item: T) => {
    const name = nameOf(item);
    if (done.has(name)) return;
    const start = path.indexOf(name);
    if (start >= 0) {
      cycle ??= [...path.slice(start), name];
      return;
    }
    path.push(name);
    for (const required of requiresOf(item)) {
      const other = byName.get(required);
      if (other) visit(other);
    }
    path.pop();
    done.add(name);
    order.push(item);
  };
  for (const item of items) visit(item);
  return { order, cycle };
}
