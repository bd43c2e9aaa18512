import { visibleLength } from "./output.ts";

const CODES = { red: 31, green: 32, yellow: 33, blue: 34, cyan: 36, grey: 90, bold: 1 } as const;
export type Colour = keyof typeof CODES;

/** Colours text where they are wanted: on a terminal, without NO_COLOR. */
export type Paint = (colour: Colour, text: string) => string;

export function painter(on: boolean): Paint {
  return (colour, text) => (on && text !== "" ? `\x1b[${CODES[colour]}m${text}\x1b[0m` : text);
}

/** Columns as wide as their widest cell, two spaces apart; no trailing blanks. `null` and `undefined` are shown as `-`. */
export function table(
  head: readonly string[],
  rows: ReadonlyArray<ReadonlyArray<string | number | null | undefined>>,
  paint: Paint,
): string {
  const text = rows.map((row) =>
    row.map((cell) => (cell === null || cell === undefined ? "-" : String(cell))),
  );
  const widths = head.map((title, i) =>
    text.reduce((most, row) => Math.max(most, visibleLength(row[i] ?? "")), title.length),
  );
  const line = (cells: readonly string[]) =>
    cells
      .map((cell, i) => (i === cells.length - 1 ? cell : cell + " ".repeat(widths[i]! - visibleLength(cell))))
      .join("  ")
      .trimEnd();
  const titles = head.map((title, i) =>
    paint("grey", i === head.length - 1 ? title : title.padEnd(widths[i]!)),
  );
  return [titles.join("  ").trimEnd(), ...text.map(line)].join("\n");
}

const STATE_COLOURS: Record<string, Colour> = {
  converged: "green",
  done: "green",
  ok: "green",
  applied: "green",
  running: "blue",
  "rolling-out": "blue",
  building: "blue",
  applying: "blue",
  sent: "blue",
  changed: "blue",
  waiting: "yellow",
  offline: "yellow",
  frozen: "yellow",
  "backing-off": "yellow",
  "rolled-back": "yellow",
  stopped: "yellow",
  failed: "red",
  refused: "red",
  halted: "red",
  orphaned: "red",
};

/** A state word in its colour; words without one stay as they are. */
export function state(paint: Paint, word: string | null | undefined): string {
  if (!word) return "-";
  const colour = STATE_COLOURS[word];
  return colour ? paint(colour, word) : word;
}

/** How long ago an ISO time was: "3s", "12m", "5h", "9d"; "-" for null. */
export function ago(time: string | null | undefined, now: number): string {
  if (!time) return "-";
  const seconds = Math.max(0, Math.round((now - Date.parse(time)) / 1000));
  if (seconds < 120) return `${seconds}s`;
  if (seconds < 7_200) return `${Math.round(seconds / 60)}m`;
  if (seconds < 172_800) return `${Math.round(seconds / 3_600)}h`;
  return `${Math.round(seconds / 86_400)}d`;
}

export function short(commit: string | null | undefined): string {
  return commit ? commit.slice(0, 8) : "-";
}
