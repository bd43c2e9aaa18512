import { z } from "zod";
import { declaredBase, manifestBase } from "../base.ts";
import { Text } from "../text.ts";
import { AccountName, Duration, Memory, Name, PlainText, Signal } from "../values.ts";

/** A reference to a resource of this module (`config`), of another (`web.config`), or `secret:NAME`. */
export const ResourceRef = z
  .string()
  .regex(/^([a-z0-9-]+\.)?[a-z0-9-]+$|^secret:[a-z0-9-]+$/, "must be an id, module.id or secret:NAME");

/** `restart`, `stop` and `handover` as written in mesh.json and in a process: every key optional there. */
export const RestartPolicy = z.strictObject({
  first: Duration.optional(),
  max: Duration.optional(),
  resetAfter: Duration.optional(),
  rollbackAfter: z.int().min(1).optional(),
  haltAfter: z.int().min(1).optional(),
});
export const StopPolicy = z.strictObject({ signal: Signal.optional(), grace: Duration.optional() });
export const HandoverPolicy = z.strictObject({
  checks: z.int().min(1).optional(),
  every: Duration.optional(),
  minUp: Duration.optional(),
  deadline: Duration.optional(),
  port: z.enum(["beside", "swap"]).optional(),
});

/** Text with each placeholder as its simplest value; null where one of them may be any text, so that nothing can be said of the whole. */
function plain(text: string): string | null {
  if (text.includes("${setting:")) return null;
  return text.replaceAll(/\$\{seat:[^}]*\}/g, "h:1").replaceAll(/\$\{[^}]*\}/g, "1");
}

function isHttp(text: string): boolean {
  const url = plain(text);
  return url === null || (/^https?:\/\/./.test(url) && URL.canParse(url));
}

function isHostAndPort(text: string): boolean {
  const address = plain(text);
  if (address === null) return true;
  const port = /^(?:\[[0-9a-fA-F:.]+\]|[^:\s/]+):(\d{1,5})$/.exec(address)?.[1];
  return port !== undefined && Number(port) >= 1 && Number(port) <= 65_535;
}

export const CheckManifest = z
  .strictObject({
    http: PlainText.refine(isHttp, 'must be a URL such as "http://${node:address}:${port:http}/"').optional(),
    tcp: PlainText.refine(
      isHostAndPort,
      'must be host:port such as "${node:address}:${port:http}" or "${seat:NAME}"',
    ).optional(),
    exec: z.array(PlainText).min(1).optional(),
    timeout: Duration.optional(),
  })
  .refine(
    (c) => [c.http, c.tcp, c.exec].filter((v) => v !== undefined).length === 1,
    "must have one of http, tcp, exec",
  );

export const ProcessManifest = z.strictObject({
  type: z.literal("process"),
  ...manifestBase,
  name: Name,
  bundle: Name.optional(),
  command: z.array(PlainText).min(1),
  env: z
    .record(z.string().regex(/^[A-Za-z_][A-Za-z0-9_]*$/, "must be a variable name"), PlainText)
    .default({}),
  envFrom: z.array(Name).default([]),
  user: AccountName.optional(),
  cwd: PlainText.optional(),
  run: z.enum(["service", "once"]).default("service"),
  schedule: z.string().optional(),
  prepares: z.boolean().default(false),
  replaces: z.array(Name).default([]),
  update: z.enum(["restart", "handover"]).default("restart"),
  restartOn: z.array(ResourceRef).default([]),
  reloadOn: z.array(ResourceRef).default([]),
  reload: z.strictObject({ signal: Signal }).optional(),
  check: CheckManifest.optional(),
  handover: HandoverPolicy.optional(),
  restart: RestartPolicy.optional(),
  stop: StopPolicy.optional(),
  limits: z.strictObject({ memory: Memory.optional(), cpu: z.number().positive().optional() }).optional(),
});
export type ProcessManifest = z.infer<typeof ProcessManifest>;

export const DeclaredCheck = z.union([
  z.strictObject({ http: Text, timeout: z.number() }),
  z.strictObject({ tcp: Text, timeout: z.number() }),
  z.strictObject({ exec: z.array(Text), timeout: z.number() }),
]);
export type DeclaredCheck = z.infer<typeof DeclaredCheck>;

/**
 * All times in milliseconds, memory in bytes, cpu in cores; policies are complete (mesh.json's defaults filled in).
 * `envFrom` are declared paths of KEY=VALUE files (the host maps them under its root). `cwd` is a declared path as a whole: render
 * it with declared paths as they are, then map the result. `restartOn` are full ids; their digests
 * are part of this one's `digest`. The digest holds what makes another version of the process: command, env, envFrom, user,
 * cwd, run, schedule, check, limits and `restartOn`; the policies (restart, stop, reload, reloadOn, minUp) are not in it, so
 * that changing them restarts nothing: a host takes them over as they are.
 */
export const DeclaredProcess = z.strictObject({
  type: z.literal("process"),
  ...declaredBase,
  name: z.string(),
  command: z.array(Text),
  env: z.record(z.string(), Text),
  envFrom: z.array(z.string()),
  user: z.string().nullable(),
  cwd: Text.nullable(),
  run: z.enum(["service", "once"]),
  schedule: z.string().nullable(),
  restartOn: z.array(z.string()),
  reloadOn: z.array(z.strictObject({ id: z.string(), digest: z.string() })),
  reload: z.strictObject({ signal: z.string() }).nullable(),
  check: DeclaredCheck.nullable(),
  minUp: z.number(),
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
export type DeclaredProcess = z.infer<typeof DeclaredProcess>;
