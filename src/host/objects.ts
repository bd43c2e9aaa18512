import { createHash } from "node:crypto";
import { meshError } from "../errors.ts";

export class ObjectAway extends meshError(
  "object-away",
  "retry",
  (f: { sha256: string }) =>
    `its content (${f.sha256.slice(0, 12)}) is not on this machine and the broker cannot be reached; it is fetched when the link is back`,
) {}

export interface ObjectFiles {
  read(name: string): Promise<Uint8Array | null>;
  write(name: string, bytes: Uint8Array): Promise<void>;
  list(): Promise<string[]>;
  remove(name: string): Promise<void>;
}

export interface ObjectCache {
  get(sha256: string): Promise<Uint8Array>;
  /** Where missing ones come from, once there is a link. */
  from(remote: { get(sha256: string): Promise<Uint8Array> }): void;
  /** Fetches what is named and not there yet, and drops the rest. */
  hold(sha256s: readonly string[]): Promise<void>;
}

/** Large file bodies on this machine, so that drift is repaired without anyone. Content is checked on every read. */
export function createObjectCache(files: ObjectFiles): ObjectCache {
  let remote: { get(sha256: string): Promise<Uint8Array> } | null = null;
  const good = (bytes: Uint8Array | null, sha256: string): bytes is Uint8Array =>
    bytes !== null && createHash("sha256").update(bytes).digest("hex") === sha256;

  const underWay = new Map<string, Promise<Uint8Array>>();

  function get(sha256: string): Promise<Uint8Array> {
    const begun = underWay.get(sha256);
    if (begun) return begun;
    const getting = fetchOne(sha256).finally(() => underWay.delete(sha256));
    underWay.set(sha256, getting);
    return getting;
  }

  async function fetchOne(sha256: string): Promise<Uint8Array> {
    const held = await files.read(sha256);
    if (good(held, sha256)) return held;
    if (!remote) throw new ObjectAway({ sha256 });
    const bytes = await remote.get(sha256);
    await files.write(sha256, bytes);
    return bytes;
  }

  return {
    get,
    from: (source) => {
      remote = source;
    },
    async hold(sha256s) {
      const wanted = new Set(sha256s);
      const held = new Set(await files.list());
      for (const name of held) if (!wanted.has(name)) await files.remove(name);
      for (const sha256 of wanted) if (!held.has(sha256)) await get(sha256);
    },
  };
}
