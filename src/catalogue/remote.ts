import { randomBytes } from "node:crypto";
import { readdir, rename, rm } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { MeshError } from "../errors.ts";

/** How a remote is reached; io/git-remote.ts does it. Each works on a bare repository of ours at `dir`. */
export interface RemoteAccess {
  tip(signal: AbortSignal | undefined): Promise<string>;
  clone(dir: string, signal: AbortSignal | undefined): Promise<string>;
  fetch(dir: string, signal: AbortSignal | undefined): Promise<string>;
  /** The commit of the ref in the clone, null when it cannot be read there. */
  have(dir: string): Promise<string | null>;
  /** Called after the clone at `dir` was replaced. */
  replaced(): void;
}

/**
 * The clone of a remote catalogue. It repairs itself: what cannot be read or fetched into is cloned anew beside it and swapped,
 * and until that worked the old one stays as it is.
 */
export class RemoteClone {
  readonly #dir: string;
  readonly #access: RemoteAccess;
  #queue: Promise<unknown> = Promise.resolve();

  constructor(dir: string, access: RemoteAccess) {
    this.#dir = dir;
    this.#access = access;
  }

  /** Brings the clone to the remote's tip and returns it. Bounded in time; one at a time. */
  sync(signal?: AbortSignal): Promise<string> {
    return this.#inTurn(async () => {
      const tip = await this.#access.tip(signal);
      const have = await this.#access.have(this.#dir);
      if (have === tip) return tip;
      if (have === null) return this.#replace(signal);
      try {
        return await this.#access.fetch(this.#dir, signal);
      } catch (cause) {
        // The remote's own refusals and silences carry a code; anything else is the clone that cannot take it.
        if (cause instanceof MeshError || signal?.aborted) throw cause;
        return this.#replace(signal);
      }
    });
  }

  /** Clones anew beside what is there and swaps. */
  repair(signal?: AbortSignal): Promise<string> {
    return this.#inTurn(() => this.#replace(signal));
  }

  async #replace(signal: AbortSignal | undefined): Promise<string> {
    await this.#sweep();
    const suffix = randomBytes(4).toString("hex");
    const fresh = `${this.#dir}.new-${suffix}`;
    const old = `${this.#dir}.old-${suffix}`;
    try {
      const commit = await this.#access.clone(fresh, signal);
      await rename(this.#dir, old).catch((error: NodeJS.ErrnoException) => {
        if (error.code !== "ENOENT") throw error;
      });
      await rename(fresh, this.#dir);
      this.#access.replaced();
      return commit;
    } finally {
      await rm(fresh, { recursive: true, force: true });
      await rm(old, { recursive: true, force: true });
    }
  }

  /** What an interrupted replacement left behind. */
  async #sweep(): Promise<void> {
    const name = basename(this.#dir);
    const parent = dirname(this.#dir);
    const left = (await readdir(parent).catch(() => [] as string[])).filter(
      (n) => n.startsWith(`${name}.new-`) || n.startsWith(`${name}.old-`),
    );
    for (const one of left) await rm(join(parent, one), { recursive: true, force: true });
  }

  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const result = this.#queue.then(work);
    this.#queue = result.catch(() => {});
    return result;
  }
}

export interface PollOptions {
  onHint: () => void | Promise<void>;
  /** A poll that failed; the next one comes all the same. */
  onError?: (error: unknown) => void;
  signal: AbortSignal;
  /** Between two polls, in milliseconds. */
  every?: number;
}

/** Asks the remote again and again, and hints when its tip moved, or when it answers after it did not. Returns when `signal` aborts. */
export async function pollRemote(
  sync: (signal: AbortSignal) => Promise<string>,
  options: PollOptions,
): Promise<void> {
  const { signal, every = 30_000 } = options;
  let last: string | null = null;
  while (!signal.aborted) {
    try {
      const tip = await sync(signal);
      if (tip !== last) await options.onHint();
      last = tip;
    } catch (error) {
      last = null;
      if (!signal.aborted) options.onError?.(error);
    }
    await delay(every, undefined, { signal }).catch(() => {});
  }
}

/** An address as it may be shown: without user, password and query. */
export function shownUrl(url: string): string {
  try {
    const parsed = new URL(url);
    parsed.username = "";
    parsed.password = "";
    parsed.search = "";
    parsed.hash = "";
    return parsed.href;
  } catch {
    return url.replace(/\/\/[^/@]*@/, "//").replace(/[?#].*$/, "");
  }
}
