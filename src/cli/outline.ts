/** Any JSON document as indented `key  value` lines, for answers that need no table. Empty values are left out. */
export function outline(value: unknown, indent = ""): string {
  if (Array.isArray(value)) return value.map((one) => bullet(one, indent)).join("\n");
  if (value === null || typeof value !== "object") return `${indent}${plain(value)}`;
  const entries = Object.entries(value).filter(([, one]) => !empty(one));
  const width = Math.max(0, ...entries.filter(([, one]) => !nested(one)).map(([key]) => key.length));
  return entries
    .map(([key, one]) =>
      nested(one)
        ? `${indent}${key}\n${outline(one, `${indent}  `)}`
        : `${indent}${key.padEnd(width)}  ${plain(one)}`,
    )
    .join("\n");
}

function bullet(value: unknown, indent: string): string {
  if (!nested(value)) return `${indent}- ${plain(value)}`;
  return `${indent}- ${outline(value, `${indent}  `).trimStart()}`;
}

function nested(value: unknown): boolean {
  return (
    typeof value === "object" &&
    value !== null &&
    !(Array.isArray(value) && value.every((v) => typeof v !== "object"))
  );
}

function empty(value: unknown): boolean {
  return (
    value === null || value === undefined || (typeof value === "object" && Object.keys(value).length === 0)
  );
}

function plain(value: unknown): string {
  return Array.isArray(value) ? value.join(", ") : String(value);
}
