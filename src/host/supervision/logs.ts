import {
  closeSync,
  existsSync,
  fstatSync,
  openSync,
  readSync,
  renameSync,
  statSync,
  truncateSync,
  writeSync,
} from "node:fs";

/** Bytes kept in the file that is written to, and as many again in the one copy before it. */
export const LOG_BOUND = 10 * 1024 * 1024;

/** O_APPEND, so that a writer goes on at the new end after a truncation. */
export function openLog(file: string): number {
  return openSync(file, "a", 0o600);
}

export function sizeOf(file: string): number {
  try {
    return statSync(file).size;
  } catch {
    return 0;
  }
}

/**
 * Copy and truncate, once the file is larger than `bound`: its last `bound` bytes become `<file>.1`, and it starts anew.
 * Bytes written between the last copied one and the truncation cannot be counted; the writer keeps its descriptor.
 * @returns bytes that were dropped (of this file and never copied), null when nothing was to do
 */
export function rotate(file: string, bound: number): number | null {
  const size = sizeOf(file);
  if (size <= bound) return null;
  const from = openSync(file, "r");
  const temp = `${file}.new`;
  try {
    const to = openSync(temp, "w", 0o600);
    try {
      const buffer = Buffer.allocUnsafe(256 * 1024);
      let at = Math.max(0, size - bound);
      for (let copied = 0; copied < bound; ) {
        const n = readSync(from, buffer, 0, Math.min(buffer.length, bound - copied), at);
        if (n === 0) break;
        writeSync(to, buffer, 0, n);
        copied += n;
        at += n;
      }
      const end = fstatSync(from).size;
      truncateSync(file, 0);
      renameSync(temp, `${file}.1`);
      return Math.max(0, size - bound) + Math.max(0, end - at);
    } finally {
      closeSync(to);
    }
  } finally {
    closeSync(from);
  }
}

/** A line of the host's own in a process' output. */
export function writeLine(file: string, line: string): void {
  const fd = openLog(file);
  try {
    writeSync(fd, `${line}\n`);
  } finally {
    closeSync(fd);
  }
}

/** Bytes as people may see them: valid UTF-8, no control bytes (a tab stays), so that no store and no terminal trips over them. */
export function sanitise(bytes: Uint8Array | string): string {
  const text = typeof bytes === "string" ? bytes : new TextDecoder("utf-8").decode(bytes);
  return text.replace(/\r$/, "").replace(/[\u0000-\u0008\u000a-\u001f\u007f-\u009f]/g, "\ufffd");
}

const LINE_BOUND = 4_000;

export function linesOf(bytes: Buffer): string[] {
  const lines: string[] = [];
  let from = 0;
  while (from < bytes.length) {
    let to = bytes.indexOf(10, from);
    if (to < 0) to = bytes.length;
    lines.push(sanitise(bytes.subarray(from, Math.min(to, from + LINE_BOUND))));
    from = to + 1;
  }
  return lines;
}

function readPart(file: string, from: number, length: number): Buffer {
  let fd: number;
  try {
    fd = openSync(file, "r");
  } catch {
    return Buffer.alloc(0);
  }
  try {
    const buffer = Buffer.alloc(length);
    return buffer.subarray(0, readSync(fd, buffer, 0, length, from));
  } finally {
    closeSync(fd);
  }
}

/** Most of the end of a file that is looked at for its last lines. */
const TAIL_BYTES = 1024 * 1024;

function lastLines(file: string, n: number): string[] {
  const size = sizeOf(file);
  const from = Math.max(0, size - Math.min(TAIL_BYTES, Math.max(8_192, n * 400)));
  const lines = linesOf(readPart(file, from, size - from));
  return (from > 0 ? lines.slice(1) : lines).slice(-n);
}

/** The last `n` lines, also from the copy before where the file was just rotated; `position` is where `follow` goes on. */
export function tail(file: string, n: number): { lines: string[]; position: number } {
  const position = sizeOf(file);
  let lines = n > 0 ? lastLines(file, n) : [];
  if (lines.length < n && existsSync(`${file}.1`))
    lines = [...lastLines(`${file}.1`, n - lines.length), ...lines];
  return { lines, position };
}

/** The last `n` lines of what was written since the file was `from` bytes long; of all that is there if it was truncated. */
export function lastSince(file: string, from: number, n: number): string[] {
  const size = sizeOf(file);
  const begin = Math.max(from > size ? 0 : from, size - 64 * 1024);
  return linesOf(readPart(file, begin, size - begin)).slice(-n);
}

/**
 * Whole lines written since `position`, at most 256 KiB of them, and the new position. A file that is shorter than
 * `position` was truncated: it is read from its beginning. A line without an end is given once it is too long to wait for.
 */
export function follow(file: string, position: number): { lines: string[]; position: number } {
  const size = sizeOf(file);
  const from = position > size ? 0 : position;
  const bytes = readPart(file, from, Math.min(size - from, 256 * 1024));
  const end = bytes.lastIndexOf(10) + 1;
  const take = end > 0 ? end : bytes.length > 64 * 1024 ? bytes.length : 0;
  return { lines: linesOf(bytes.subarray(0, take)), position: from + take };
}
