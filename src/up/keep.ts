import { readdirSync, readFileSync, rmSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { messageOf } from "../errors.ts";
import { incarnation, readIfThere, writeDurably } from "../io/durable.ts";
import type { Layout } from "./layout.ts";

/** One program of the mesh, as its keeper sees it. */
export interface Part {
  /** As in run/<name>.pid and logs/<name>.log. */
  name: string;
  /** Its pid when it runs though no pid file says so: it was started just before the last keeper was killed. */
  find(): Promise<number | null>;
  /** Starts it and resolves once it does its work (or at least lives). `gone` resolves when it ended, where that is known. */
  start(): Promise<{ pid: number; gone?: Promise<void> }>;
  stop(pid: number): Promise<void>;
}

const POLL = 100;
/** A dead part is back within a second; one that dies at once again and again is tried each second, later every five. */
const PAUSES = [0, 100, 300, 700, 900, 900, 900, 900, 900, 5_000];
const LIVED = 10_000;

/** The pid of a part that runs now, by its pid file and the incarnation beside it. */
export function runningPid(layout: Layout, name: string): number | null {
  const life = readIfThere(layout.lifeFile(name));
  const pid = Number(readIfThere(layout.pidFile(name)));
  return life !== null && pid > 0 && incarnation(pid) === life ? pid : null;
}

export function writePid(layout: Layout, name: string, pid: number): void {
  const life = incarnation(pid);
  if (life === null) return;
  writeDurably(layout.lifeFile(name), life);
  writeDurably(layout.pidFile(name), `${pid}\n`);
}

export function removePid(layout: Layout, name: string): void {
  rmSync(layout.pidFile(name), { force: true });
  rmSync(layout.lifeFile(name), { force: true });
}

/** The names of all parts that have a pid file, `up` not among them. */
export function knownParts(layout: Layout): string[] {
  try {
    return readdirSync(layout.run)
      .filter((entry) => entry.endsWith(".pid") && entry !== "up.pid")
      .map((entry) => entry.slice(0, -".pid".length));
  } catch {
    return [];
  }
}

/** A process with exactly these arguments, where there is one. */
export function findByArguments(args: readonly string[]): number | null {
  const wanted = `${args.join("\0")}\0`;
  for (const entry of readdirSync("/proc")) {
    if (!/^\d+$/.test(entry)) continue;
    try {
      if (readFileSync(`/proc/${entry}/cmdline`, "utf8") === wanted) return Number(entry);
    } catch {
      // It ended meanwhile, or is not ours to look at.
    }
  }
  return null;
}

export async function waitGone(pid: number, life: string, signal?: AbortSignal): Promise<void> {
  while (!signal?.aborted && incarnation(pid) === life) await delay(POLL);
}

/** Keeps one part running: adopts it, starts it, starts it again when it ends. */
export class Keeper {
  readonly part: Part;
  private readonly layout: Layout;
  private readonly say: (text: string) => void;
  private readonly ended = new AbortController();
  private loop: Promise<void> = Promise.resolve();
  /** The last failure to start, null once it runs. */
  failure: string | null = null;
  failures = 0;

  constructor(part: Part, layout: Layout, say: (text: string) => void) {
    this.part = part;
    this.layout = layout;
    this.say = say;
  }

  /** Resolves once it runs for the first time; rejects where the first start fails. The part is kept from then on. */
  async begin(): Promise<void> {
    const first = await this.run();
    this.loop = this.keep(first);
  }

  /** Goes on trying also where the first start fails. Resolves once that was tried. */
  async beginAnyway(): Promise<void> {
    const first = await this.run().catch((error: unknown) => this.failed(error));
    this.loop = this.keep(first);
  }

  /** Lets go of it and stops it. */
  async end(): Promise<void> {
    this.ended.abort();
    await this.loop;
    const pid = runningPid(this.layout, this.part.name);
    if (pid !== null) await this.part.stop(pid);
    removePid(this.layout, this.part.name);
  }

  private async keep(first: { gone: Promise<void> } | null): Promise<void> {
    const { signal } = this.ended;
    let running = first;
    let since = Date.now();
    while (!signal.aborted) {
      if (running) {
        await running.gone;
        if (signal.aborted) return;
        if (Date.now() - since > LIVED) this.failures = 0;
        this.say(`${this.part.name} ended and is started again`);
      }
      await delay(PAUSES[Math.min(this.failures, PAUSES.length - 1)], undefined, { signal }).catch(() => {});
      if (signal.aborted) return;
      this.failures++;
      since = Date.now();
      try {
        running = await this.run();
      } catch (error) {
        running = this.failed(error);
      }
    }
  }

  private failed(error: unknown): null {
    this.failure = messageOf(error);
    this.say(this.failure);
    return null;
  }

  private async run(): Promise<{ gone: Promise<void> }> {
    const { part, layout } = this;
    const there = runningPid(layout, part.name) ?? (await part.find());
    const started: { pid: number; gone?: Promise<void> } =
      there === null ? await part.start() : { pid: there };
    const life = incarnation(started.pid) ?? "";
    writePid(layout, part.name, started.pid);
    if (there === null) this.say(`${part.name} runs (pid ${started.pid})`);
    this.failure = null;
    const aborted = new Promise<void>((done) =>
      this.ended.signal.addEventListener("abort", () => done(), { once: true }),
    );
    return { gone: Promise.race([started.gone ?? waitGone(started.pid, life, this.ended.signal), aborted]) };
  }
}
