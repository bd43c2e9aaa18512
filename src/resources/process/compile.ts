import { Cron } from "croner";
import { DigestOf, type Draft } from "../draft.ts";
import { type CompileScope, type DraftResource, type Kind, RANK } from "../kind.ts";
import { DeclaredProcess, ProcessManifest } from "./schema.ts";

/** Programs of which `command[0] prepare` would not be the module's own preparation. */
const INTERPRETER =
  /^(sh|bash|dash|ash|zsh|ksh|fish|busybox|env|node|nodejs|deno|bun|python[\d.]*|perl[\d.]*|ruby[\d.]*|php[\d.]*|java|lua[\d.]*)$/;

/** What makes another version of the process; its policies do not. */
const IDENTITY = ["name", "command", "env", "envFrom", "user", "cwd", "run", "schedule", "check", "limits"];

export const processKind = {
  type: "process",
  manifest: ProcessManifest,
  declared: DeclaredProcess,
  ids: (m) => {
    const id = m.id ?? m.name;
    return m.prepares ? [{ id: prepareId(id) }, { id }] : [{ id }];
  },
  compile: (m, scope) => {
    checkSchedule(m, scope);
    const main = mainDraft(m, scope);
    if (!m.prepares) return [main];
    const prepare = prepareDraft(m, main, scope);
    return [prepare, { ...main, requires: [...main.requires, prepare.id] }];
  },
} satisfies Kind<"process", ProcessManifest>;

function prepareId(id: string): string {
  return `${id}-prepare`;
}

function mainDraft(m: ProcessManifest, scope: CompileScope): DraftResource {
  const texts = (values: readonly string[], field: string): Draft =>
    values.map((value, i) => scope.text(value, [field, i]));
  const refs = (values: readonly string[], field: string): string[] => {
    const ids = values.map((ref, i) => scope.reference(ref, [field, i]));
    return [...new Set(ids.filter((id) => id !== null))];
  };
  const restartOn = refs(m.restartOn, "restartOn");
  const env = Object.entries(m.env).map(([key, value]) => [key, scope.text(value, ["env", key])] as const);
  return {
    id: m.id ?? m.name,
    fields: {
      name: m.name,
      command: texts(m.command, "command"),
      env: Object.fromEntries(env),
      envFrom: m.envFrom.map((id, i) => scope.pathOf(id, ["envFrom", i])).filter((path) => path !== null),
      user: m.user ?? null,
      cwd: m.cwd === undefined ? null : scope.text(m.cwd, ["cwd"]),
      run: m.run,
      schedule: m.schedule ?? null,
      restartOn,
      reloadOn: refs(m.reloadOn, "reloadOn").map((id) => ({ id, digest: new DigestOf(id) })),
      reload: m.reload ?? null,
      check: checkDraft(m, scope),
      minUp: m.handover?.minUp ?? scope.policies.minUp,
      restart: { ...scope.policies.restart, ...given(m.restart) },
      stop: { ...scope.policies.stop, ...given(m.stop) },
      limits: { memory: m.limits?.memory ?? null, cpu: m.limits?.cpu ?? null },
    },
    identity: IDENTITY,
    requires: m.requires,
    restartOn,
    rank: m.run === "once" ? RANK.once : RANK.service,
    claims: [{ space: "process", name: m.name }],
  };
}

/** The run-once step before a process: its own program, asked to prepare, with the same account and environment. */
function prepareDraft(m: ProcessManifest, main: DraftResource, scope: CompileScope): DraftResource {
  const program = m.command[0] as string;
  const base = program.slice(program.lastIndexOf("/") + 1);
  if (INTERPRETER.test(base)) {
    scope.problem(
      ["prepares"],
      `command[0] is the interpreter ${base}; "prepares" runs \`command[0] prepare\`, so it must be the program itself`,
    );
  }
  const name = `${m.name}-prepare`;
  return {
    ...main,
    id: prepareId(main.id),
    fields: {
      ...main.fields,
      name,
      command: [scope.text(program, ["command", 0]), "prepare"],
      run: "once",
      schedule: null,
      check: null,
      reload: null,
      reloadOn: [],
    },
    rank: RANK.once,
    claims: [{ space: "process", name }],
  };
}

function checkDraft(m: ProcessManifest, scope: CompileScope): Draft {
  if (!m.check) return null;
  const { http, tcp, exec } = m.check;
  const timeout = m.check.timeout ?? scope.policies.checkTimeout;
  if (http !== undefined) return { http: scope.text(http, ["check", "http"]), timeout };
  if (tcp !== undefined) return { tcp: scope.text(tcp, ["check", "tcp"]), timeout };
  return { exec: (exec ?? []).map((arg, i) => scope.text(arg, ["check", "exec", i])), timeout };
}

function checkSchedule(m: ProcessManifest, scope: CompileScope): void {
  if (m.schedule === undefined) return;
  if (m.run !== "once") {
    scope.problem(["schedule"], `found with "run": "${m.run}"; a schedule goes with "run": "once"`);
  }
  const allowed = 'allowed are five fields as cron takes them, such as "*/5 * * * *"';
  if (m.schedule.trim().split(/\s+/).length !== 5) {
    scope.problem(["schedule"], `found "${m.schedule}"; ${allowed}`);
    return;
  }
  try {
    new Cron(m.schedule, { paused: true });
  } catch {
    scope.problem(["schedule"], `found "${m.schedule}"; ${allowed}`);
  }
}

/** The keys that have a value: an absent one must not hide the mesh's own. */
function given<T extends object>(policy: T | undefined): { [K in keyof T]?: NonNullable<T[K]> } {
  const entries = Object.entries(policy ?? {}).filter(([, value]) => value !== undefined);
  return Object.fromEntries(entries) as { [K in keyof T]?: NonNullable<T[K]> };
}
