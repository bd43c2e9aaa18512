import type { CommandFile } from "./app.ts";

/** Every command: its line in `mesh --help`, and its file, which is read only when it is needed. */
export const COMMANDS: Record<string, { summary: string; load: () => Promise<CommandFile> }> = {
  up: { summary: "start a whole mesh on this machine", load: () => import("./commands/up.ts") },
  down: { summary: "stop it, with its workloads", load: () => import("./commands/down.ts") },
  init: { summary: "make a new catalogue", load: () => import("./commands/init.ts") },
  check: { summary: "validate and compose a catalogue, offline", load: () => import("./commands/check.ts") },
  preview: { summary: "what a merge would do, offline", load: () => import("./commands/preview.ts") },
  schema: { summary: "print a JSON Schema", load: () => import("./commands/schema.ts") },
  status: { summary: "the state of the mesh", load: () => import("./commands/status.ts") },
  nodes: { summary: "list nodes", load: () => import("./commands/nodes.ts") },
  node: { summary: "show one node, down to every resource", load: () => import("./commands/node.ts") },
  diff: { summary: "how a node differs from its declaration", load: () => import("./commands/diff.ts") },
  why: { summary: "why a resource is as it is", load: () => import("./commands/why.ts") },
  plans: { summary: "list plans; stop, retry, confirm, skip", load: () => import("./commands/plans.ts") },
  plan: { summary: "show one plan, or wait for it", load: () => import("./commands/plan.ts") },
  freeze: { summary: "hold all sending", load: () => import("./commands/freeze.ts") },
  unfreeze: { summary: "let sending go on", load: () => import("./commands/unfreeze.ts") },
  push: { summary: "compose and send again", load: () => import("./commands/push.ts") },
  logs: { summary: "output of a process", load: () => import("./commands/logs.ts") },
  restart: { summary: "restart a process", load: () => import("./commands/restart.ts") },
  events: { summary: "what happened on the nodes", load: () => import("./commands/events.ts") },
  doctor: { summary: "find out what is wrong here", load: () => import("./commands/doctor.ts") },
  completion: { summary: "print a shell completion", load: () => import("./commands/completion.ts") },
};
