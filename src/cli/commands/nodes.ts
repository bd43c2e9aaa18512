import type { Command } from "commander";
import type { App, Run } from "../app.ts";
import type { NodeEntry } from "../documents.ts";
import { BadArgument } from "../errors.ts";
import { EXIT } from "../exit.ts";
import { nodeTable } from "./status.ts";

export function define(command: Command, app: App, run: Run): void {
  command
    .option(
      "--label <key=value>",
      "only nodes with this label; may be repeated",
      (pair: string, all: string[]) => [...all, pair],
      [],
    )
    .option("--failed", "only nodes that are failed or refused")
    .option("--json", "one document")
    .addHelpText("after", "\nExample:\n  $ mesh nodes --label role=web --failed")
    .action((options: { label: string[]; failed?: boolean; json?: boolean }) =>
      run(() =>
        app.withLink(async (link) => {
          const body = { labels: labelsOf(options.label), failed: options.failed ?? false };
          const doc = await link.controller<{ nodes: NodeEntry[] }>("nodes", body);
          if (options.json) app.out.json(doc);
          else app.out.print(nodeTable(doc.nodes, app.paint, Date.now()));
          return EXIT.done;
        }),
      ),
    );
}

export function labelsOf(pairs: string[]): Record<string, string> {
  const labels: Record<string, string> = {};
  for (const pair of pairs) {
    const at = pair.indexOf("=");
    if (at < 1)
      throw new BadArgument({ what: "--label", found: pair, allowed: "KEY=VALUE, such as role=web" });
    labels[pair.slice(0, at)] = pair.slice(at + 1);
  }
  return labels;
}
