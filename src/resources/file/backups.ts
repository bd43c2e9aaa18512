import { createHash } from "node:crypto";
import { mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";

/** Copies of what the host is about to overwrite or remove and did not write itself. */
export interface Backups {
  /** Keeps the bytes (0600, in a folder only the host can enter) and returns where. */
  keep(path: string, bytes: Uint8Array): string;
}

const KEPT_PER_PATH = 5;

export function createBackups(dir: string, now: () => number): Backups {
  return {
    keep(path, bytes) {
      mkdirSync(dir, { recursive: true, mode: 0o700 });
      const id = createHash("sha256").update(path).digest("hex").slice(0, 8);
      const prefix = `${basename(path).slice(0, 100)}.${id}.`;
      const at = new Date(now()).toISOString().replaceAll(":", "-");
      const file = join(dir, `${prefix}${at}`);
      writeFileSync(file, bytes, { mode: 0o600 });
      const all = readdirSync(dir)
        .filter((name) => name.startsWith(prefix))
        .sort();
      for (const old of all.slice(0, -KEPT_PER_PATH)) rmSync(join(dir, old), { force: true });
      return file;
    },
  };
}
