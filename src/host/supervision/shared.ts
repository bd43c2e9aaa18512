import { createHash } from "node:crypto";
import type { Clock } from "../../io/clock.ts";
import type { HostEvent } from "../../report/schema.ts";
import type { Cgroups } from "./cgroup.ts";
import type { ProcFs } from "./proc.ts";
import type { RecordStore } from "./record.ts";

/** Named points at which tests end the host: a function that may never return. */
export type Fault = (point: "supervision:intent" | "supervision:spawned" | "supervision:stopping") => void;

/** What all processes of one supervisor have in common. */
export interface Shared {
  records: RecordStore;
  /** Folder of the runs' pid and exit files. */
  runs: string;
  proc: ProcFs;
  clock: Clock;
  cgroups: Cgroups;
  invoker: { uid: number; gid: number; name: string; home: string };
  base: { path: string; lang: string };
  logBound: number;
  random(): number;
  fault: Fault;
  emit(id: string, kind: HostEvent["kind"] | null, detail?: string): void;
  /** Aborted by `close`. */
  signal: AbortSignal;
}

/** Stands for a digest in file names, whatever the digest is written like. */
export function keyOf(digest: string): string {
  return createHash("sha256").update(digest).digest("hex").slice(0, 16);
}
