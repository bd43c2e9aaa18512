import type { Command } from "commander";
import type { App, Run } from "../app.ts";
import { EXIT } from "../exit.ts";

export function define(command: Command, app: App, run: Run): void {
  command
    .argument("<node>", "the node")
    .argument("<resource>", "the process, as module.id")
    .option("--json", "one document")
    .addHelpText("after", "\nExample:\n  $ mesh restart web-1 web.server")
    .action((node: string, resource: string, options: { json?: boolean }) =>
      run(() =>
        app.withLink(async (link) => {
          const doc = await link.node(node, "restart", { resource });
          if (options.json) app.out.json(doc);
          else app.out.print(`${resource} on ${node} was restarted`);
          return EXIT.done;
        }),
      ),
    );
}
