import { existsSync } from "node:fs";
import { messageOf } from "../errors.ts";
import { lockHolder } from "../io/durable.ts";
import { knownParts, runningPid } from "../up/keep.ts";
import { layoutOf } from "../up/layout.ts";
import { findNatsServer } from "../up/nats.ts";
import type { App } from "./app.ts";
import type { NodeDoc, StatusDoc } from "./documents.ts";
import type { Link } from "./link.ts";

/** One thing that was looked at. `note`: works, but a person should know. `remedy`: what to do, where something is to be done. */
export interface Check {
  name: string;
  state: "good" | "note" | "bad";
  detail: string;
  remedy: string | null;
}

const LEAST_NODE = [20, 19] as const;

/** Looks at this machine, then at the mesh of the context, part by part. Never throws. */
export async function examine(app: App): Promise<Check[]> {
  const checks = [nodeVersion(), await natsServer(app)];
  try {
    const { context, file } = app.context();
    checks.push(good("context", file ?? "from the environment"));
    if (context.dir) checks.push(...parts(context.dir));
    await app.withLink(async (link) => {
      checks.push(good("broker", "answers"));
      checks.push(...(await askController(link)));
    });
  } catch (error) {
    checks.push(bad("mesh", messageOf(error), null));
  }
  return checks;
}

const good = (name: string, detail: string): Check => ({ name, state: "good", detail, remedy: null });
const bad = (name: string, detail: string, remedy: string | null): Check => ({
  name,
  state: "bad",
  detail,
  remedy,
});

function nodeVersion(): Check {
  const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
  const enough = major > LEAST_NODE[0] || (major === LEAST_NODE[0] && minor >= LEAST_NODE[1]);
  return enough
    ? good("node", process.versions.node)
    : bad("node", `is ${process.versions.node}`, `install Node.js ${LEAST_NODE.join(".")} or newer`);
}

async function natsServer(app: App): Promise<Check> {
  try {
    const { file, version } = await findNatsServer(app.env.PATH ?? "");
    return good("nats-server", `${version} at ${file}`);
  } catch (error) {
    return { name: "nats-server", state: "note", detail: messageOf(error), remedy: null };
  }
}

function parts(dir: string): Check[] {
  const layout = layoutOf(dir);
  if (!existsSync(layout.state)) return [];
  const parent = lockHolder(layout.run);
  const first =
    parent === null
      ? bad("mesh up", "its parent process does not run", `start it with \`mesh up --dir ${dir}\``)
      : good("mesh up", `runs (pid ${parent})`);
  const dead = knownParts(layout).filter((name) => runningPid(layout, name) === null);
  return [first, ...dead.map((name) => bad(name, "does not run", `read ${layout.logFile(name)}`))];
}

async function askController(link: Link): Promise<Check[]> {
  const status = await link.controller<StatusDoc>("status", {});
  const { catalogue, plan } = status;
  const checks: Check[] = [];
  const active = status.controllers.filter((one) => one.role === "active").length;
  checks.push(
    active === 1
      ? good("controller", "active")
      : bad("controller", `${active} are active`, "wait ten seconds and look again"),
  );
  if (catalogue.problems.length > 0) {
    checks.push(bad("catalogue", `${catalogue.problems.length} problems`, "see `mesh status`"));
  } else if (!catalogue.commit) checks.push(bad("catalogue", `no commit on ${catalogue.ref}`, "push one"));
  else checks.push(good("catalogue", `${catalogue.ref} at ${catalogue.commit.slice(0, 8)}`));
  if (plan && (plan.state === "halted" || plan.state === "waiting")) {
    checks.push(
      bad("plan", `${plan.id} is ${plan.state}: ${plan.reason ?? ""}`, `see \`mesh plan ${plan.id}\``),
    );
  }
  if (status.frozen)
    checks.push({
      name: "freeze",
      state: "note",
      detail: "the whole mesh is frozen",
      remedy: "`mesh unfreeze` ends it",
    });
  for (const node of status.nodes) checks.push(...(await askNode(link, node)));
  return checks;
}

const TROUBLE = new Set(["failed", "refused", "offline", "orphaned"]);
/** Only so many nodes are asked one by one for what is not enforced there. */
const ASKED = 50;

async function askNode(link: Link, node: StatusDoc["nodes"][number]): Promise<Check[]> {
  const name = `node ${node.name}`;
  if (TROUBLE.has(node.state)) {
    return [
      bad(name, `is ${node.state}${node.error ? `: ${node.error}` : ""}`, `see \`mesh node ${node.name}\``),
    ];
  }
  const doc = await link
    .controller<NodeDoc & { limits?: string[] }>("node", { name: node.name })
    .catch(() => null);
  return (doc?.limits ?? [])
    .slice(0, ASKED)
    .map((limit) => ({ name, state: "note", detail: limit, remedy: null }));
}
