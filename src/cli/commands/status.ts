import type { Command } from "commander";
import type { App, Run } from "../app.ts";
import type { StatusDoc } from "../documents.ts";
import { EXIT } from "../exit.ts";
import { ago, type Paint, short, state, table } from "../table.ts";
import { watch } from "../watch.ts";
import { problemLine } from "./check.ts";

export function define(command: Command, app: App, run: Run): void {
  command
    .option("--check", "exit 3 unless everything is converged")
    .option("--watch", "draw again at each change")
    .option("--json", "one document")
    .addHelpText("after", "\nExample:\n  $ mesh status --check && echo all is well")
    .action((options: { check?: boolean; watch?: boolean; json?: boolean }) =>
      run(() =>
        app.withLink(async (link) => {
          const read = () => link.controller<StatusDoc>("status", {});
          if (options.watch) {
            return watch(app, {
              read,
              json: options.json,
              show: (doc, now) => statusText(doc, app.paint, now),
            });
          }
          const doc = await read();
          if (options.json) app.out.json(doc);
          else app.out.print(statusText(doc, app.paint, Date.now()));
          return options.check && !converged(doc) ? EXIT.notConverged : EXIT.done;
        }),
      ),
    );
}

const AT_REST = new Set(["converged", "observed", "released", "retired"]);

/** Every node at rest, no problem in the catalogue, and the latest plan done: that of the newest commit. */
export function converged(doc: StatusDoc): boolean {
  return (
    doc.nodes.every((node) => AT_REST.has(node.state)) &&
    doc.catalogue.problems.length === 0 &&
    doc.plan?.state === "done" &&
    doc.plan.commit === doc.catalogue.commit
  );
}

/** What became of the newest commit, and what holds instead. */
export function refusedText({ commit, deployed, problems }: StatusDoc["catalogue"]): string {
  const unread = commit === null || problems.every(({ file }) => file === "");
  const what = unread ? "the catalogue cannot be read" : `commit ${short(commit)} is refused`;
  return `${what}; ${deployed === null ? "nothing was deployed yet" : `${short(deployed)} stays in force`}`;
}

export function statusText(doc: StatusDoc, paint: Paint, now: number): string {
  const { catalogue, plan } = doc;
  const lines: string[] = [];
  if (doc.frozen) {
    const why = doc.frozen.reason ? `: ${doc.frozen.reason}` : "";
    lines.push(paint("yellow", `FROZEN by ${doc.frozen.by}${why}. Nothing is sent until \`mesh unfreeze\`.`));
  }
  lines.push(
    `${paint("bold", doc.mesh)}  ${catalogue.ref} ${short(catalogue.commit)} ${catalogue.subject ?? ""}`,
  );
  const count = catalogue.problems.length;
  if (count > 0) {
    lines.push(
      paint("red", `${refusedText(catalogue)}, ${count === 1 ? "1 problem" : `${count} problems`}:`),
    );
    for (const problem of catalogue.problems) lines.push(`  ${problemLine(problem)}`);
  }
  if (plan) {
    const tier = plan.tier === null ? "" : ` in tier ${plan.tier}`;
    const reason = plan.reason ? `: ${plan.reason}` : "";
    lines.push(`plan ${plan.id}  ${state(paint, plan.state)}${plan.state === "done" ? "" : tier}${reason}`);
  } else lines.push("no plan yet");
  const active = doc.controllers.find((one) => one.role === "active");
  const standbys = doc.controllers.length - (active ? 1 : 0);
  lines.push(
    `controller  ${active ? `active for ${ago(active.since, now)}` : paint("red", "none active")}${standbys ? `, ${standbys} standing by` : ""}`,
  );
  lines.push("", nodeTable(doc.nodes, paint, now), "", totalsText(doc.totals));
  return lines.join("\n");
}

export function nodeTable(nodes: StatusDoc["nodes"], paint: Paint, now: number): string {
  if (nodes.length === 0) return "no nodes";
  return table(
    ["NODE", "STATE", "COMMIT", "SEEN", ""],
    nodes.map((node) => [
      node.name,
      state(paint, node.state),
      short(node.commit),
      node.seenAt ? `${ago(node.seenAt, now)} ago` : "never",
      node.error ?? handoverText(node),
    ]),
    paint,
  );
}

function handoverText(node: StatusDoc["nodes"][number]): string {
  return (node.handovers ?? []).map((h) => `${h.resource} ${h.state} ${h.passed}/${h.required}`).join(", ");
}

export function totalsText(totals: Record<string, number>): string {
  const { nodes = 0, ...rest } = totals;
  const parts = Object.entries(rest).filter(([, count]) => count > 0);
  return `${nodes} ${nodes === 1 ? "node" : "nodes"}${parts.map(([name, count]) => `, ${count} ${name}`).join("")}`;
}
