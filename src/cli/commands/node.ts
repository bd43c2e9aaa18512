import type { Command } from "commander";
import type { App, Run } from "../app.ts";
import type { NodeDoc } from "../documents.ts";
import { EXIT } from "../exit.ts";
import { ago, type Paint, short, state, table } from "../table.ts";

export function define(command: Command, app: App, run: Run): void {
  command
    .argument("<name>", "the node")
    .option("--declaration", "print the declaration that `mesh-host apply FILE` takes")
    .option("--json", "one document")
    .addHelpText("after", "\nExample:\n  $ mesh node web-1")
    .action((name: string, options: { declaration?: boolean; json?: boolean }) =>
      run(() =>
        app.withLink(async (link) => {
          if (options.declaration) app.out.json(await link.controller("declaration", { node: name }));
          else {
            const doc = await link.controller<NodeDoc>("node", { name });
            if (options.json) app.out.json(doc);
            else app.out.print(nodeText(doc, app.paint, Date.now()));
          }
          return EXIT.done;
        }),
      ),
    );
}

export function nodeText(doc: NodeDoc, paint: Paint, now: number): string {
  const { declared } = doc;
  const lines = [
    `${paint("bold", doc.name)}  ${state(paint, doc.state)}${doc.error ? `: ${doc.error}` : ""}`,
    `seen      ${doc.seenAt ? `${ago(doc.seenAt, now)} ago` : "never"}`,
    `reported  ${short(doc.revision)} of commit ${short(doc.commit)}`,
  ];
  if (declared) {
    lines.push(
      `declared  ${short(declared.revision)} of commit ${short(declared.commit)}, tier ${declared.tier}, number ${declared.sequence}`,
    );
  }
  for (const h of doc.handovers ?? []) {
    lines.push(
      `handover  ${h.resource} from ${h.replaces}: ${h.state} ${h.passed}/${h.required}${h.reason ? `: ${h.reason}` : ""}`,
    );
  }
  const rows = doc.resources.map((r) => [
    r.id,
    r.type,
    state(paint, r.state),
    r.process
      ? `${state(paint, r.process.state)}${r.process.pid ? ` pid ${r.process.pid}` : ""}${r.process.restarts ? `, ${r.process.restarts} restarts` : ""}`
      : "",
    r.error ?? r.note ?? "",
  ]);
  if (rows.length > 0) lines.push("", table(["RESOURCE", "TYPE", "STATE", "PROCESS", ""], rows, paint));
  return lines.join("\n");
}
