import type { HostEvent, ProcessReport } from "../../report/schema.ts";

export type RenderedCheck =
  | { http: string; timeout: number }
  | { tcp: string; timeout: number }
  | { exec: string[]; timeout: number };

/** A process ready to run on this machine: no reference left, paths real. Times in ms, memory in bytes. */
export interface ProcessSpec {
  id: string;
  name: string;
  /** The resource's own digest: another digest is another version of the process. */
  digest: string;
  command: string[];
  env: Record<string, string>;
  /** KEY=VALUE files, read at each start; later ones and `env` win. */
  envFiles: string[];
  /** null: as the invoker. */
  user: string | null;
  cwd: string;
  run: "service" | "once";
  schedule: string | null;
  check: RenderedCheck | null;
  minUp: number;
  checkEvery: number;
  reload: { signal: string } | null;
  restart: { first: number; max: number; resetAfter: number; rollbackAfter: number; haltAfter: number };
  stop: { signal: string; grace: number };
  limits: { memory: number | null; cpu: number | null };
}

/**
 * `proof` of the wanted version: proving (not yet shown), proven (passed its check, or one incarnation for minUp; a run-once
 * that exited 0; a scheduled run-once as soon as it is scheduled), failed (rolled back, halted, once exited otherwise).
 */
export interface ProcessStatus extends ProcessReport {
  id: string;
  /** Digest of the version that runs now (after a roll back: the previous one), null when none. */
  runningDigest: string | null;
  wantedDigest: string;
  proof: "proving" | "proven" | "failed";
  error: string | null;
  /** The last output lines after a failure, valid UTF-8 without control bytes. */
  last: string[];
}

/** Keeps processes as declared, across the life of hosts. Everything it decides is on disk before it is done. */
export interface Supervisor {
  /** Reads its records and adopts what still runs (same incarnation); strangers are never signalled. Call first, once. */
  resume(): Promise<void>;
  /**
   * Makes `spec` the wanted version and resolves when its first start was tried (service, scheduled) or it ended (once).
   * Same digest as wanted: nothing is started or stopped; policies that differ (restart, stop, reload, minUp) are taken over,
   * since they are not part of the digest. Throws when a once step failed or the program cannot be started.
   * `signal` ends waiting for a once step (SupervisorClosed); the step itself goes on, and the next `ensure` waits for it again.
   */
  ensure(spec: ProcessSpec, signal?: AbortSignal): Promise<{ changed: boolean }>;
  /** Whether `ensure` would do something. */
  differs(spec: ProcessSpec): "absent" | "same" | "differs";
  /** Stops it (signal, grace, then everything descended from it) and forgets it. Throws StopFailed, keeping the record. */
  remove(id: string): Promise<void>;
  restart(id: string): Promise<void>;
  /** Sends the reload signal to the main process, or restarts where none is declared. */
  reload(id: string): Promise<void>;
  status(id: string): ProcessStatus | null;
  list(): ProcessStatus[];
  /** Real path of the log file (stdout and stderr together). */
  logFile(id: string): string;
  /** What is not enforced on this machine, one line each. */
  limits(): string[];
  /** Called at each change of a status; `event` where something happened that people want to see. */
  onChange(listener: (id: string, event: HostEvent | null) => void): void;
  /** Stops supervising; the processes live on. */
  close(): Promise<void>;
}
