/** Looking at JSON that may be of any shape: checks go on beside what a schema refuses, so that all problems show at once. */
export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export function itemsOf(value: unknown): unknown[] {
  return Array.isArray(value) ? value : [];
}

export function entriesOf(value: unknown): Array<[string, unknown]> {
  return isObject(value) ? Object.entries(value) : [];
}

/** The strings of a list, each with its index. */
export function namesOf(value: unknown): Array<[number, string]> {
  return itemsOf(value).flatMap((item, i) =>
    typeof item === "string" ? [[i, item] as [number, string]] : [],
  );
}

/**
 * A copy whose objects have no prototype and whose keys are sorted: `constructor` is an ordinary name in it,
 * and the order of keys in a file cannot matter.
 */
export function bare<T>(value: T): T {
  if (Array.isArray(value)) return value.map(bare) as T;
  if (!isObject(value)) return value;
  const copy: Record<string, unknown> = Object.create(null);
  for (const key of Object.keys(value).sort()) copy[key] = bare(value[key]);
  return copy as T;
}
