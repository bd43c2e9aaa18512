import { type ChildProcess, spawn } from "node:child_process";
import { fstatSync } from "node:fs";
import { EXIT } from "./exit.ts";

/**
 * Everything `mesh` prints. Documents and tables go to stdout, messages to stderr.
 * A reader that goes away (`| head -1`, a closed terminal) ends the program at once and quietly.
 */
export class Output {
  readonly tty: boolean;
  readonly colour: boolean;
  private drawn = 0;
  private guard: ChildProcess | null = null;

  constructor(options: { tty: boolean; colour: boolean }) {
    this.tty = options.tty;
    this.colour = options.colour;
    for (const stream of [process.stdout, process.stderr]) {
      stream.on("error", (error: NodeJS.ErrnoException) => {
        if (error.code === "EPIPE" || error.code === "EIO") this.leave(EXIT.done);
        // A full disk behind `> file`: said in one line, where that can still be said.
        if (stream === process.stdout) process.stderr.write(`mesh: stdout: ${error.message}\n`);
        this.leave(EXIT.failed);
      });
    }
  }

  print(text: string): void {
    process.stdout.write(text.endsWith("\n") ? text : `${text}\n`);
  }

  /** One document. With `line` it takes one line, for `-f` and `--watch`. */
  json(document: unknown, line = false): void {
    process.stdout.write(`${JSON.stringify(document, null, line ? 0 : 2)}\n`);
  }

  note(text: string): void {
    process.stderr.write(`${text}\n`);
  }

  /** Draws over what the last call drew, on a terminal; elsewhere prints it anew. */
  redraw(text: string): void {
    const columns = process.stdout.columns || 80;
    const rows = (process.stdout.rows || 40) - 1;
    if (!this.tty) {
      this.print(text);
      return;
    }
    const lines = text.replace(/\n$/, "").split("\n");
    const shown = lines.slice(0, rows).map((line) => clip(line, columns));
    const up = this.drawn > 0 ? `\x1b[${this.drawn}A` : "";
    process.stdout.write(`${up}${shown.map((line) => `\r\x1b[K${line}\n`).join("")}\x1b[J`);
    this.drawn = shown.length;
  }

  /**
   * Ends the program soon after the reader of a pipe is gone, also when nothing more is ever written. Node cannot poll
   * for that; GNU tail does it while it follows a file, so one is kept on the same pipe. Elsewhere the next write shows it.
   */
  endWithReader(): void {
    try {
      if (this.tty || !fstatSync(1).isFIFO()) return;
    } catch {
      return;
    }
    const args = ["-f", "-s", "0.5", `--pid=${process.pid}`, "/dev/null"];
    const child = spawn("tail", args, { stdio: ["ignore", 1, "ignore"] });
    child.on("error", () => {});
    child.on("exit", (_code, signal) => {
      if (signal === "SIGPIPE") this.leave(0);
    });
    child.unref();
    this.guard = child;
  }

  /** Ends the program once all that was written has left it. */
  async finish(code: number): Promise<never> {
    for (const stream of [process.stdout, process.stderr]) {
      await new Promise<void>((done) => stream.write("", () => done()));
    }
    return this.leave(code);
  }

  private leave(code: number): never {
    this.guard?.kill("SIGKILL");
    process.exit(code);
  }
}

const ESCAPE = /\x1b\[[0-9;]*m/g;

/** Cuts a line to `columns` visible characters; colours take no room. */
export function clip(line: string, columns: number): string {
  let room = columns;
  let out = "";
  let last = 0;
  for (const match of line.matchAll(ESCAPE)) {
    const text = line.slice(last, match.index);
    out += text.slice(0, room) + match[0];
    room = Math.max(0, room - text.length);
    last = match.index + match[0].length;
  }
  return out + line.slice(last, last + room);
}

export function visibleLength(text: string): number {
  return text.replace(ESCAPE, "").length;
}
