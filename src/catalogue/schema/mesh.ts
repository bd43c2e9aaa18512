import { z } from "zod";
import { HandoverPolicy, RestartPolicy, StopPolicy } from "../../resources/process/schema.ts";
import { Duration, Name } from "../../resources/values.ts";

const Share = z.string().regex(/^(100|[1-9]?\d)%$/, 'must be a share such as "30%"');
const CountOrShare = z.union([z.int().min(1), Share]);
const Version = z.string().regex(/^\d+\.\d+\.\d+$/, 'must be a version such as "0.1.0"');
export const SettingValue = z.union([z.string(), z.number(), z.boolean()]);
export type SettingValue = z.infer<typeof SettingValue>;
/** Overrides keyed by module, then by setting. */
export const SettingOverrides = z.record(Name, z.record(Name, SettingValue));
export type SettingOverrides = z.infer<typeof SettingOverrides>;

/** mesh.json: every key optional; the defaults are those of the catalogue reference. Durations become milliseconds. */
export const MeshFile = z.strictObject({
  $schema: z.string().optional(),
  name: Name.default("mesh"),
  needs: z
    .strictObject({ controller: Version.default("0.1.0"), host: Version.default("0.1.0") })
    .prefault({}),
  ports: z
    .strictObject({
      from: z.int().min(1).max(65535).default(20000),
      to: z.int().min(1).max(65535).default(29999),
    })
    .refine((p) => p.from <= p.to, "from must not be above to")
    .prefault({}),
  rollout: z
    .strictObject({
      batches: z.array(CountOrShare).min(1).default([1, "10%", "50%", "100%"]),
      maxFailures: z.int().min(0).default(0),
      maxSilent: Share.default("20%"),
      soak: Duration.prefault("0s"),
      timeout: Duration.prefault("10m"),
    })
    .prefault({}),
  guard: z
    .strictObject({
      emptied: z.boolean().default(true),
      history: z.boolean().default(true),
      removals: z
        .strictObject({ count: z.int().min(0).default(20), share: Share.default("30%") })
        .prefault({}),
      restarts: Share.default("50%"),
    })
    .prefault({}),
  host: z
    .strictObject({
      check: Duration.prefault("5s"),
      reconcile: Duration.prefault("5m"),
      heartbeat: Duration.prefault("30s"),
      handover: HandoverPolicy.prefault({}),
      restart: RestartPolicy.prefault({}),
      stop: StopPolicy.prefault({}),
    })
    .prefault({}),
  settings: SettingOverrides.default({}),
  secrets: z.strictObject({ recipients: z.array(z.string()).default([]) }).prefault({}),
  verify: z.null().default(null),
});
export type MeshFile = z.infer<typeof MeshFile>;

/** The policies that a process gets where neither it nor mesh.json says otherwise. Milliseconds. */
export const POLICY_DEFAULTS = {
  handover: { checks: 2, every: 5_000, minUp: 10_000, deadline: 300_000, port: "beside" as const },
  restart: { first: 1_000, max: 60_000, resetAfter: 60_000, rollbackAfter: 3, haltAfter: 5 },
  stop: { signal: "SIGTERM", grace: 10_000 },
  checkTimeout: 5_000,
};
