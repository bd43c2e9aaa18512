import { z } from "zod";
import { meshError } from "../errors.ts";
import { runCall } from "../inventory/calls.ts";
import { freeze, unfreeze } from "../inventory/freezes.ts";
import type { Inventory } from "../inventory/index.ts";
import { readNodes } from "../inventory/nodes.ts";
import { pushAgain } from "../inventory/sending.ts";
import type { Clock } from "../io/clock.ts";
import type { Tx } from "../io/postgres.ts";
import { applyCommand } from "../plan/apply-command.ts";
import { commandPlan } from "../plan/command-verb.ts";
import { type Answers, NodeUnknown } from "./answers.ts";

export class VerbBody extends meshError(
  "verb-body",
  "stalled",
  (f: { verb: string; where: string; why: string }) => `verb ${f.verb}: ${f.where || "the body"}: ${f.why}`,
) {}

/** A verb's call: its id comes again with each retry. */
export interface Call {
  id: string;
}
export type VerbHandler = (body: unknown, call: Call) => Promise<unknown>;

export interface VerbDeps {
  inventory: Inventory;
  answers: Answers;
  clock: Clock;
  /** Reads the ref now, and resolves when what was found there is a plan or refused (`plan latest`). */
  lookAtRef(): Promise<void>;
  /** Tells the active controller, whichever it is, that there is something to work. Never fails. */
  notice(kind: "command" | "push" | "freeze"): void;
}

const Name = z.string().min(1);
const By = z.string().max(200).default("somebody");
const Empty = z.object({});
const Bodies = {
  node: z.object({ name: Name }),
  declaration: z.object({ node: Name }),
  nodes: z.object({ labels: z.record(z.string(), z.string()).optional(), failed: z.boolean().optional() }),
  why: z.object({ node: Name, resource: Name }),
  plan: z.object({ id: z.union([z.int().min(1), z.literal("latest")]) }),
  events: z.object({ after: z.int().min(0).optional(), limit: z.int().min(1).max(1_000).optional() }),
  command: z.object({ id: z.int().min(1), by: By }),
  skip: z.object({ id: z.int().min(1), node: Name, by: By }),
  freeze: z.object({ node: Name.optional(), reason: z.string().max(1_000).default(""), by: By }),
  push: z.object({ nodes: z.array(Name).optional() }),
};

/** Every verb of the seat mesh-controller, by name. Any controller answers them; the active one works what they ask. */
export function controllerVerbs(deps: VerbDeps): Record<string, VerbHandler> {
  const { answers } = deps;
  const read = <B>(
    verb: string,
    schema: z.ZodType<B>,
    answer: (body: B) => Promise<unknown>,
  ): VerbHandler => {
    return async (body) => answer(parse(verb, schema, body));
  };
  return {
    status: read("status", Empty, () => answers.status()),
    nodes: read("nodes", Bodies.nodes, (body) => answers.nodes(body)),
    node: read("node", Bodies.node, ({ name }) => answers.node(name)),
    declaration: read("declaration", Bodies.declaration, ({ node }) => answers.declaration(node)),
    why: read("why", Bodies.why, ({ node, resource }) => answers.why(node, resource)),
    plans: read("plans", Empty, () => answers.plans()),
    plan: read("plan", Bodies.plan, async ({ id }) => {
      if (id === "latest") await deps.lookAtRef();
      return answers.plan(id);
    }),
    events: read("events", Bodies.events, (body) => answers.events(body)),
    "plans-stop": planCommand(deps, "stop"),
    "plans-retry": planCommand(deps, "retry"),
    "plans-confirm": planCommand(deps, "confirm"),
    "plans-skip": planSkip(deps),
    freeze: freezeVerb(deps),
    unfreeze: unfreezeVerb(deps),
    push: pushVerb(deps),
  };
}

function parse<B>(verb: string, schema: z.ZodType<B>, body: unknown): B {
  const parsed = schema.safeParse(body ?? {});
  if (parsed.success) return parsed.data;
  const issue = parsed.error.issues[0];
  throw new VerbBody({ verb, where: issue?.path.join(".") ?? "", why: issue?.message ?? "is not allowed" });
}

function planCommand(deps: VerbDeps, command: "stop" | "retry" | "confirm"): VerbHandler {
  const verb = `plans-${command}`;
  return async (body, call) => {
    const { id, by } = parse(verb, Bodies.command, body);
    const answer = await commandPlan(
      { ...deps, applyCommand },
      { id: call.id, verb },
      { plan: id, command, node: null, by },
    );
    deps.notice("command");
    return answer;
  };
}

function planSkip(deps: VerbDeps): VerbHandler {
  return async (body, call) => {
    const { id, node, by } = parse("plans-skip", Bodies.skip, body);
    const asked = { plan: id, command: "skip" as const, node, by };
    const answer = await commandPlan({ ...deps, applyCommand }, { id: call.id, verb: "plans-skip" }, asked);
    deps.notice("command");
    return answer;
  };
}

function freezeVerb(deps: VerbDeps): VerbHandler {
  return async (body, call) => {
    const { node, reason, by } = parse("freeze", Bodies.freeze, body);
    const answer = await runCall(deps.inventory, { id: call.id, verb: "freeze" }, async (tx) => {
      if (node !== undefined) await requireNodes(tx, [node]);
      return { node: node ?? null, frozen: await freeze(tx, node ?? null, { reason, by }) };
    });
    deps.notice("freeze");
    return answer;
  };
}

function unfreezeVerb(deps: VerbDeps): VerbHandler {
  return async (body, call) => {
    const { node } = parse("unfreeze", Bodies.freeze, body);
    const answer = await runCall(deps.inventory, { id: call.id, verb: "unfreeze" }, async (tx) => {
      if (node !== undefined) await requireNodes(tx, [node]);
      return { node: node ?? null, frozen: null, was: await unfreeze(tx, node ?? null) };
    });
    deps.notice("freeze");
    return answer;
  };
}

function pushVerb(deps: VerbDeps): VerbHandler {
  return async (body, call) => {
    const { nodes } = parse("push", Bodies.push, body);
    const answer = await runCall(deps.inventory, { id: call.id, verb: "push" }, async (tx) => {
      if (nodes) await requireNodes(tx, nodes);
      return { pushed: await pushAgain(tx, nodes ?? null) };
    });
    deps.notice("push");
    return answer;
  };
}

async function requireNodes(tx: Tx, nodes: readonly string[]): Promise<void> {
  const known = await readNodes(tx);
  const names = new Set(known.map(({ name }) => name));
  const missing = nodes.find((node) => !names.has(node));
  if (missing !== undefined) throw new NodeUnknown({ node: missing, known: [...names] });
}
