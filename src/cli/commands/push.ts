import type { Command } from "commander";
import type { App, Run } from "../app.ts";
import { EXIT } from "../exit.ts";
import { outline } from "../outline.ts";

export function define(command: Command, app: App, run: Run): void {
  command
    .argument("[nodes...]", "only these nodes; without any all of them")
    .option("--json", "one document")
    .addHelpText("after", "\nExample:\n  $ mesh push web-1")
    .action((nodes: string[], options: { json?: boolean }) =>
      run(() =>
        app.withLink(async (link) => {
          const doc = await link.controller("push", nodes.length > 0 ? { nodes } : {});
          if (options.json) app.out.json(doc);
          else app.out.print(outline(doc) || "sent again");
          return EXIT.done;
        }),
      ),
    );
}
