import type { Command } from "commander";
import type { App, Run } from "../app.ts";
import { EXIT } from "../exit.ts";
import { writeNewCatalogue } from "../new-catalogue.ts";

export function define(command: Command, app: App, run: Run): void {
  command
    .argument("<dir>", "a new or empty folder")
    .option("--json", "one document")
    .addHelpText("after", "\nExample:\n  $ mesh init shop && mesh check shop && mesh up --catalogue shop")
    .action((dir: string, options: { json?: boolean }) =>
      run(async () => {
        const files = await writeNewCatalogue(dir);
        if (options.json) app.out.json({ dir, files });
        else {
          app.out.print(
            `${dir} is a catalogue of one node and one module:\n${files.map((file) => `  ${file}`).join("\n")}`,
          );
          app.out.print(`Next: mesh check ${dir}, then mesh up --catalogue ${dir}`);
        }
        return EXIT.done;
      }),
    );
}
