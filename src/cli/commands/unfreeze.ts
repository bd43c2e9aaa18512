import type { Command } from "commander";
import type { App, Run } from "../app.ts";
import { setFreeze } from "./freeze.ts";

export function define(command: Command, app: App, run: Run): void {
  command
    .argument("[node]", "only this node; without it the whole mesh")
    .option("--reason <text>", "kept in the events")
    .option("--json", "one document")
    .addHelpText("after", "\nExample:\n  $ mesh unfreeze")
    .action((node: string | undefined, options: { reason?: string; json?: boolean }) =>
      run(() => setFreeze(app, "unfreeze", node, options)),
    );
}
