import type { Command } from "commander";
import type { App, Run } from "../app.ts";
import type { WhyDoc } from "../documents.ts";
import { EXIT } from "../exit.ts";
import { ago, type Paint, short, state, table } from "../table.ts";

export function define(command: Command, app: App, run: Run): void {
  command
    .argument("<node>", "the node")
    .argument("<resource>", "the resource, as module.id")
    .option("--json", "one document")
    .addHelpText("after", "\nExample:\n  $ mesh why web-1 web.server")
    .action((node: string, resource: string, options: { json?: boolean }) =>
      run(() =>
        app.withLink(async (link) => {
          const doc = await link.controller<WhyDoc>("why", { node, resource });
          if (options.json) app.out.json(doc);
          else app.out.print(whyText(doc, app.paint, Date.now()));
          return EXIT.done;
        }),
      ),
    );
}

export function whyText(doc: WhyDoc, paint: Paint, now: number): string {
  const { process: p } = doc;
  const facts: Array<[string, string | null]> = [
    ["placed by", doc.declared ? doc.placedBy.join(", ") : "nothing: it is no longer declared"],
    ["commit", doc.commit && short(doc.commit)],
    ["requires", doc.requires.join(", ")],
    ["needed by", doc.requiredBy.join(", ")],
    ["process", p && processText(p, paint, now)],
    ["last exit", p?.exit ?? null],
    ["node", `${doc.node} is ${state(paint, doc.nodeState)}${doc.nodeError ? `: ${doc.nodeError}` : ""}`],
  ];
  const why = doc.error ?? doc.note;
  const lines = [`${paint("bold", doc.resource)}  ${state(paint, doc.state)}${why ? `: ${why}` : ""}`];
  for (const [name, text] of facts) if (text) lines.push(`${name.padEnd(9)}  ${text}`);
  if (doc.output.length > 0) lines.push("", "its last output", ...doc.output.map((line) => `  ${line}`));
  if (doc.events.length > 0) {
    const rows = doc.events.map(({ at, kind, detail }) => [at, kind, detail]);
    lines.push("", table(["AT", "EVENT", ""], rows, paint));
  }
  return lines.join("\n");
}

function processText(p: NonNullable<WhyDoc["process"]>, paint: Paint, now: number): string {
  const parts = [`${state(paint, p.state)}${p.pid ? ` pid ${p.pid}` : ""}`];
  if (p.since) parts.push(`for ${ago(p.since, now)}`);
  if (p.restarts) parts.push(`${p.restarts} restarts`);
  return parts.join(", ");
}
