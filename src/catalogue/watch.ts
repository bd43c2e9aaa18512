import { statSync } from "node:fs";
import { dirname, join } from "node:path";
import { type FSWatcher, watch } from "chokidar";

export interface WatchOptions {
  /** Called when the ref may have moved; it only hints, the handler reads the ref itself. Never while another call of it runs. */
  onHint: () => void | Promise<void>;
  signal: AbortSignal;
  /** The safety poll, in milliseconds: a hint whatever the watch said. */
  poll?: number;
}

/** Hints nearer than this, in milliseconds, become one: a push touches several files. */
const GATHER = 10;

/**
 * Watches one ref of a repository on disk, loose or packed, replaced by rename, with its folders going and coming.
 * Returns once the watch is set up (at most 2 s later); hints until `signal` aborts. A hint is given at the start.
 */
export async function watchRef(gitDir: string, ref: string, options: WatchOptions): Promise<void> {
  const { signal, poll = 10_000 } = options;
  const hint = gathered(options.onHint, signal);
  const wanted = wantedPaths(gitDir, ref);
  let watcher: FSWatcher | null = null;
  let watched = "";
  const start = async () => {
    const old = watcher;
    watched = identity(wanted);
    const one = watch(gitDir, {
      ignored: (path) => !wanted.has(path),
      ignoreInitial: true,
      followSymlinks: false,
      atomic: false,
    });
    watcher = one;
    one.on("all", hint);
    // Told before chokidar has compared what it knows; what it would take for "no change" is a hint all the same.
    one.on("raw", hint);
    one.on("error", () => {});
    await new Promise<void>((ready) => {
      one.once("ready", ready);
      setTimeout(ready, 2_000).unref();
    });
    await old?.close();
    if (signal.aborted) await one.close();
  };
  const timer = setInterval(() => {
    hint();
    // A repository moved away and back, or folders removed and remade, may leave the watch on what is gone.
    if (identity(wanted) !== watched) void start();
  }, poll);
  const stop = () => {
    clearInterval(timer);
    void watcher?.close();
  };
  signal.addEventListener("abort", stop, { once: true });
  if (signal.aborted) return stop();
  await start();
  hint();
}

/** Which folders are there now: their inodes. */
function identity(paths: ReadonlySet<string>): string {
  return [...paths]
    .map((path) => statSync(path, { throwIfNoEntry: false }))
    .map((stat) => (stat?.isDirectory() ? stat.ino : ""))
    .join();
}

/** The ref's file and the folders above it, packed-refs, HEAD; and what the reftable format has instead. */
function wantedPaths(gitDir: string, ref: string): Set<string> {
  const wanted = new Set([gitDir, join(gitDir, "HEAD"), join(gitDir, "packed-refs")]);
  for (let path = join(gitDir, ref); path.startsWith(`${gitDir}/`); path = dirname(path)) wanted.add(path);
  return wanted.add(join(gitDir, "reftable")).add(join(gitDir, "reftable", "tables.list"));
}

/** One call after the first of many, and one more when others came while it ran. Errors of the handler are its own to report. */
function gathered(handler: () => void | Promise<void>, signal: AbortSignal): () => void {
  let waiting = false;
  let running = false;
  let again = false;
  const run = async () => {
    running = true;
    do {
      again = false;
      await Promise.resolve()
        .then(handler)
        .catch(() => {});
    } while (again && !signal.aborted);
    running = false;
  };
  return () => {
    if (signal.aborted || waiting) return;
    if (running) {
      again = true;
      return;
    }
    waiting = true;
    setTimeout(() => {
      waiting = false;
      if (!signal.aborted && !running) void run();
      else again = true;
    }, GATHER);
  };
}
