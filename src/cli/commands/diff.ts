import type { Command } from "commander";
import type { App, Run } from "../app.ts";
import { EXIT } from "../exit.ts";
import { table } from "../table.ts";

interface DiffDoc {
  node: string;
  differences: Array<{ id: string; change: string; detail: string }>;
}

export function define(command: Command, app: App, run: Run): void {
  command
    .argument("<node>", "the node, which is asked now")
    .argument("[resource]", "only this resource, as module.id")
    .option("--json", "one document")
    .addHelpText("after", "\nExample:\n  $ mesh diff web-1 web.config")
    .action((node: string, resource: string | undefined, options: { json?: boolean }) =>
      run(() =>
        app.withLink(async (link) => {
          const doc = await link.node<DiffDoc>(node, "diff", resource ? { resource } : {});
          if (options.json) app.out.json(doc);
          else if (doc.differences.length === 0) app.out.print(`${node} is as declared`);
          else {
            const rows = doc.differences.map((d) => [d.id, d.change, d.detail]);
            app.out.print(table(["RESOURCE", "CHANGE", ""], rows, app.paint));
          }
          return EXIT.done;
        }),
      ),
    );
}
