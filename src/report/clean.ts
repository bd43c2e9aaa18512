import type { Report } from "./schema.ts";

const LONGEST = 4_000;
const NOT_TEXT = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f]/g;
const HALF_PAIR = /[\ud800-\udfff]/gu;

/** Text that JSON, Postgres and a terminal all take: no zero or other control bytes, whole characters, at most 4,000 of them. */
export function cleanText(text: string): string {
  const whole = text.length > LONGEST ? `${text.slice(0, LONGEST)}…` : text;
  return whole.replace(NOT_TEXT, "\ufffd").replace(HALF_PAIR, "\ufffd");
}

/** The same value with every text in it cleaned. */
export function cleaned<T>(value: T): T {
  if (typeof value === "string") return cleanText(value) as T;
  if (Array.isArray(value)) return value.map(cleaned) as T;
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, cleaned(member)])) as T;
}

const SHORT = 200;
const short = (text: string | null) => (text && text.length > SHORT ? `${text.slice(0, SHORT)}…` : text);

/** Each makes a report smaller; from what is missed least to what is missed most. */
const TRIMS: ReadonlyArray<(report: Report) => Report> = [
  (report) => ({ ...report, resources: report.resources.map(({ last: _, ...rest }) => rest) }),
  (report) => ({ ...report, events: report.events.slice(-100) }),
  (report) => ({
    ...report,
    events: report.events.map((event) => ({ ...event, detail: short(event.detail) ?? "" })),
  }),
  (report) => ({ ...report, differences: report.differences.slice(0, 100) }),
  (report) => ({
    ...report,
    resources: report.resources.map((one) => ({ ...one, error: short(one.error), note: short(one.note) })),
  }),
  (report) => ({ ...report, events: [], differences: [], limits: report.limits.slice(0, 5) }),
  (report) => ({
    ...report,
    resources: report.resources.filter((one) => one.state !== "ok" && one.state !== "changed"),
    limits: ["this report was too large: resources that hold are left out of it"],
  }),
  (report) => ({ ...report, resources: report.resources.slice(0, 500) }),
];

/** The report as JSON of at most `most` bytes: last output lines go first, then events, then long errors. */
export function fitReport(report: Report, most: number): string {
  let text = JSON.stringify(report);
  let smaller = report;
  for (const trim of TRIMS) {
    if (Buffer.byteLength(text) <= most) break;
    smaller = trim(smaller);
    text = JSON.stringify(smaller);
  }
  return text;
}
