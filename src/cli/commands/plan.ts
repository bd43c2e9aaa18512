import { setTimeout as delay } from "node:timers/promises";
import type { Command } from "commander";
import type { App, Run } from "../app.ts";
import type { PlanDoc, StatusDoc } from "../documents.ts";
import { BadArgument } from "../errors.ts";
import { EXIT } from "../exit.ts";
import type { Link } from "../link.ts";
import { ago, type Paint, short, state, table } from "../table.ts";
import { watch } from "../watch.ts";
import { problemLine } from "./check.ts";
import { refusedText } from "./status.ts";

interface Options {
  wait?: boolean;
  watch?: boolean;
  json?: boolean;
}

export function define(command: Command, app: App, run: Run): void {
  command
    .argument("<id>", "the plan's number, or latest: the plan of the newest commit")
    .option("--wait", "until it is done (exit 0), or halts, waits or stops (exit 3)")
    .option("--watch", "draw again at each change, until it ends")
    .option("--json", "one document")
    .addHelpText("after", "\nExample:\n  $ git push && mesh plan latest --wait")
    .action((id: string, options: Options) =>
      run(() => app.withLink((link) => show(app, link, id, options))),
    );
}

async function show(app: App, link: Link, text: string, options: Options): Promise<number> {
  if (text === "latest" && (await tipRefused(app, link))) return EXIT.failed;
  const read = follow(link, idOf(text));
  const draw = (doc: PlanDoc, now: number) => planText(doc, app.paint, now);
  if (options.watch) {
    return watch(app, {
      read,
      show: draw,
      brief: (doc) => planLine(doc, app.paint),
      json: options.json,
      done: endOf,
      every: 250,
    });
  }
  let doc = await read();
  if (!options.wait) {
    print(app, doc, options);
    return EXIT.done;
  }
  let code = endOf(doc);
  while (code === null) {
    await delay(100);
    doc = await read();
    code = endOf(doc);
  }
  print(app, doc, options);
  return code;
}

/** The newest commit has no plan when it was refused: what is wrong with it is said instead. */
async function tipRefused(app: App, link: Link): Promise<boolean> {
  // Asking for the plan makes the controller read the ref, so that the status after it is of the tip.
  await link.controller("plan", { id: "latest" }).catch(() => null);
  const { catalogue } = await link.controller<StatusDoc>("status", {});
  if (catalogue.problems.length === 0) return false;
  app.out.note(`mesh: ${refusedText(catalogue)}`);
  for (const problem of catalogue.problems) app.out.note(problemLine(problem));
  return true;
}

function print(app: App, doc: PlanDoc, options: Options): void {
  if (options.json) app.out.json(doc);
  else app.out.print(planText(doc, app.paint, Date.now()));
}

function idOf(text: string): number | "latest" {
  if (text === "latest") return text;
  if (/^[1-9]\d{0,8}$/.test(text)) return Number(text);
  throw new BadArgument({ what: "plan", found: text, allowed: "a number such as 7, or latest" });
}

/** Reads a plan again and again; once it is superseded, reads the one after it. */
function follow(link: Link, first: number | "latest"): () => Promise<PlanDoc> {
  let id = first;
  return async () => {
    const doc = await link.controller<PlanDoc>("plan", { id });
    id = doc.id;
    if (doc.state === "superseded") id = doc.supersededBy ?? "latest";
    return doc;
  };
}

/** 0 when done, 3 when only a person or another merge helps it on, null while it goes on or has a successor. */
export function endOf(doc: PlanDoc): number | null {
  if (doc.state === "done") return EXIT.done;
  if (doc.state === "running" || doc.state === "superseded") return null;
  return EXIT.notConverged;
}

/** A plan on one line, for a watch that is no terminal. */
export function planLine(doc: PlanDoc, paint: Paint): string {
  const tiers = doc.tiers.map((tier) => {
    const applied = tier.nodes.filter((node) => node.state === "applied").length;
    const progress = tier.nodes.length > 0 ? ` ${applied}/${tier.nodes.length}` : "";
    return `tier ${tier.tier} ${state(paint, tier.state)}${progress}`;
  });
  return `plan ${doc.id} ${state(paint, doc.state)}: ${tiers.join(", ")}${doc.reason ? `; ${doc.reason}` : ""}`;
}

const BAR = 20;

export function planText(doc: PlanDoc, paint: Paint, now: number): string {
  const lines = [
    `plan ${doc.id}  ${state(paint, doc.state)}${doc.reason ? `: ${doc.reason}` : ""}`,
    `commit ${short(doc.commit)}${doc.base ? ` after ${short(doc.base)}` : ""}, made ${ago(doc.createdAt, now)} ago`,
  ];
  for (const tier of doc.tiers) {
    const applied = tier.nodes.filter((node) => node.state === "applied").length;
    const total = tier.nodes.length;
    const full = total === 0 ? 0 : Math.round((applied / total) * BAR);
    const bar =
      total === 0
        ? ""
        : `  ${paint("green", "#".repeat(full))}${paint("grey", ".".repeat(BAR - full))}  ${applied} of ${total} applied`;
    lines.push(`tier ${tier.tier}  ${state(paint, tier.state)}${bar}`);
  }
  const rows = doc.tiers.flatMap((tier) => [
    ...tier.builds.map((b) => [
      tier.tier,
      `${b.module}/${b.bundle}`,
      null,
      state(paint, b.state),
      b.error ?? "",
    ]),
    ...tier.nodes.map((n) => [tier.tier, n.node, n.batch, state(paint, n.state), n.error ?? ""]),
  ]);
  if (rows.length > 0) lines.push("", table(["TIER", "NODE", "BATCH", "STATE", ""], rows, paint));
  return lines.join("\n");
}
