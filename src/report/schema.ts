import { z } from "zod";

export const ResourceState = z.enum(["ok", "changed", "failed", "skipped", "kept", "waiting"]);
export const ProcessState = z.enum([
  "running",
  "backing-off",
  "rolled-back",
  "halted",
  "exited",
  "stopped",
  "unknown",
]);
export const HandoverState = z.enum([
  "starting",
  "checking",
  "switching",
  "confirming",
  "removing",
  "done",
  "failed",
  "cancelled",
]);

export const ProcessReport = z.object({
  state: ProcessState,
  pid: z.number().nullable(),
  restarts: z.number(),
  since: z.string().nullable(),
  exit: z.string().nullable().default(null),
});
export type ProcessReport = z.infer<typeof ProcessReport>;

/** `error` is one line with the cause, "mapped to <you>" style notes go to `note`; `last` are a failed process's last output lines, sanitised. */
export const ResourceReport = z.object({
  id: z.string(),
  type: z.string(),
  state: ResourceState,
  error: z.string().nullable().default(null),
  note: z.string().nullable().default(null),
  last: z.array(z.string()).optional(),
  process: ProcessReport.nullable().default(null),
});
export type ResourceReport = z.infer<typeof ResourceReport>;

export const HandoverReport = z.object({
  resource: z.string(),
  replaces: z.string(),
  state: HandoverState,
  passed: z.number(),
  required: z.number(),
  gapMs: z.number().nullable(),
  reason: z.string().nullable(),
  since: z.string(),
});

/** Something that happened on a node: an exit, a restart, repaired drift, an applied change, a refused declaration. */
export const HostEvent = z.object({
  at: z.string(),
  kind: z.enum([
    "applied",
    "changed",
    "removed",
    "drift",
    "exit",
    "started",
    "restarted",
    "reloaded",
    "rolled-back",
    "halted",
    "refused",
    "failed",
    "state-set-aside",
    "note",
  ]),
  resource: z.string().nullable(),
  detail: z.string(),
});
export type HostEvent = z.infer<typeof HostEvent>;

/**
 * What a host says of itself. Fields that a newer host adds are passed over, never a reason to set a report aside. Every report holds the whole state, so that folding the newest one is enough; `events` are
 * those since the report before it. Numbered from 1 per host start; `hostStart` is the start's ISO time plus a random
 * suffix, so that starts of one node order by text. Outcome of the declaration named by `sequence`:
 * applying (work goes on) | waiting (a failure is being retried, below three tries) | applied | failed | observed | refused.
 */
export const Report = z.object({
  format: z.literal(1),
  node: z.string(),
  hostStart: z.string(),
  number: z.int().min(1),
  at: z.string(),
  version: z.string(),
  arch: z.string(),
  outcome: z.enum(["none", "applying", "waiting", "applied", "failed", "observed", "refused"]),
  error: z.string().nullable(),
  revision: z.string().nullable(),
  sequence: z.int(),
  commit: z.string().nullable(),
  resources: z.array(ResourceReport),
  /** In observe mode: what would change. */
  differences: z.array(z.object({ id: z.string(), change: z.string(), detail: z.string() })).default([]),
  handovers: z.array(HandoverReport).default([]),
  events: z.array(HostEvent).default([]),
  /** Lines that `mesh doctor` shows of this host: what is not enforced here and why. */
  limits: z.array(z.string()).default([]),
  droppedReports: z.int().default(0),
});
export type Report = z.infer<typeof Report>;

/** Heartbeat on `mesh.heartbeat.<node>`, core NATS. */
export const Heartbeat = z.object({
  node: z.string(),
  hostStart: z.string(),
  at: z.string(),
  sequence: z.int(),
  revision: z.string().nullable(),
  number: z.int(),
});
export type Heartbeat = z.infer<typeof Heartbeat>;
