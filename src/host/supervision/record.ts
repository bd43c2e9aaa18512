import { randomBytes } from "node:crypto";
import {
  closeSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { freshPolicy, PolicyState } from "./policy.ts";
import { Incarnation } from "./proc.ts";

export const Spec = z.strictObject({
  id: z.string(),
  name: z.string(),
  digest: z.string(),
  command: z.array(z.string()).min(1),
  env: z.record(z.string(), z.string()),
  envFiles: z.array(z.string()),
  user: z.string().nullable(),
  cwd: z.string(),
  run: z.enum(["service", "once"]),
  schedule: z.string().nullable(),
  check: z
    .union([
      z.strictObject({ http: z.string(), timeout: z.number() }),
      z.strictObject({ tcp: z.string(), timeout: z.number() }),
      z.strictObject({ exec: z.array(z.string()), timeout: z.number() }),
    ])
    .nullable(),
  minUp: z.number(),
  checkEvery: z.number(),
  reload: z.strictObject({ signal: z.string() }).nullable(),
  restart: z.strictObject({
    first: z.number(),
    max: z.number(),
    resetAfter: z.number(),
    rollbackAfter: z.number(),
    haltAfter: z.number(),
  }),
  stop: z.strictObject({ signal: z.string(), grace: z.number() }),
  limits: z.strictObject({ memory: z.number().nullable(), cpu: z.number().nullable() }),
});

/** `code`: exit status as `sh` gives it (128 + signal), null when nobody saw it. `at`: wall ms. */
export const Exit = z.strictObject({ code: z.int().nullable(), at: z.number(), up: z.number() });
export type Exit = z.infer<typeof Exit>;

/**
 * One start. `base` is the path of its files: `base.pid` (the parent's, made before it forks), `base.main`, `base.exit`;
 * it is also an argument of the parent, by which it is found. `key` stands for the version's digest. `seen` are descendants
 * that may leave its session. `cgroups` are folders made for it.
 */
export const Run = z.strictObject({
  base: z.string(),
  key: z.string(),
  at: z.number(),
  parent: Incarnation.nullable(),
  main: Incarnation.nullable(),
  seen: z.array(Incarnation),
  cgroups: z.array(z.string()),
  /** Size of the output file when it began. */
  logAt: z.number(),
  passed: z.boolean(),
});
export type Run = z.infer<typeof Run>;

export const ProcessRecord = z.strictObject({
  format: z.literal(1),
  id: z.string(),
  /** null: rebuilt from what runs, its declaration was lost. */
  wanted: Spec.nullable(),
  /** The newest version that was proven; another one than `wanted` is what a roll back puts back. */
  proven: Spec.nullable(),
  run: Run.nullable(),
  policy: PolicyState,
  exit: Exit.nullable(),
  error: z.string().nullable(),
  last: z.array(z.string()),
  /** When the state last changed, wall ms. */
  since: z.number(),
  /** Digest of the run-once that succeeded. */
  done: z.string().nullable(),
  /** Being stopped for good: a host that finds it goes on with it. */
  removing: z.boolean(),
  droppedLogBytes: z.number(),
});
export type ProcessRecord = z.infer<typeof ProcessRecord>;

export interface RecordStore {
  folder(id: string): string;
  ids(): string[];
  /** `aside`: where an unreadable record was put. The copy before it is used where it can be read. */
  load(id: string): { record: ProcessRecord | null; aside: string | null };
  /** On disk when it returns. */
  save(record: ProcessRecord): void;
  forget(id: string): void;
}

const ID = /^[a-z0-9][a-z0-9._-]{0,199}$/i;

function syncFolder(path: string): void {
  const fd = openSync(path, "r");
  try {
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}

/**
 * Records are small and their order against spawn and kill is what safety rests on, so writing them is synchronous:
 * nothing else of this host runs between a decision and its being on disk.
 */
export function openRecords(dir: string): RecordStore {
  const processes = join(dir, "processes");
  mkdirSync(processes, { recursive: true, mode: 0o700 });
  const folder = (id: string) => {
    if (!ID.test(id)) throw new TypeError(`not an id of a process: ${JSON.stringify(id)}`);
    return join(processes, id);
  };
  const read = (file: string): ProcessRecord | "absent" | "torn" => {
    try {
      return ProcessRecord.parse(JSON.parse(readFileSync(file, "utf8")));
    } catch (error) {
      return (error as NodeJS.ErrnoException).code === "ENOENT" ? "absent" : "torn";
    }
  };
  return {
    folder,
    ids: () => readdirSync(processes).filter((name) => ID.test(name)),
    load: (id) => {
      const at = folder(id);
      const file = join(at, "record.json");
      let aside: string | null = null;
      let record = read(file);
      if (record === "torn") {
        aside = join(at, `record.torn-${randomBytes(4).toString("hex")}.json`);
        renameSync(file, aside);
      }
      if (typeof record === "string") record = read(join(at, "record.prev.json"));
      return { record: typeof record === "string" || record.id !== id ? null : record, aside };
    },
    save: (record) => {
      const at = folder(record.id);
      mkdirSync(at, { recursive: true, mode: 0o700 });
      const file = join(at, "record.json");
      const temp = join(at, "record.tmp");
      const fd = openSync(temp, "w", 0o600);
      try {
        writeSync(fd, JSON.stringify(record));
        fsyncSync(fd);
      } finally {
        closeSync(fd);
      }
      try {
        renameSync(file, join(at, "record.prev.json"));
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
      }
      renameSync(temp, file);
      syncFolder(at);
    },
    forget: (id) => rmSync(folder(id), { recursive: true, force: true }),
  };
}

export function freshRecord(id: string, now: number): ProcessRecord {
  return {
    format: 1,
    id,
    wanted: null,
    proven: null,
    run: null,
    policy: freshPolicy,
    exit: null,
    error: null,
    last: [],
    since: now,
    done: null,
    removing: false,
    droppedLogBytes: 0,
  };
}
