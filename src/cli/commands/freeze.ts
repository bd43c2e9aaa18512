import type { Command } from "commander";
import type { App, Run } from "../app.ts";
import { EXIT } from "../exit.ts";

export function define(command: Command, app: App, run: Run): void {
  command
    .argument("[node]", "only this node; without it the whole mesh")
    .option("--reason <text>", "shown in `mesh status`")
    .option("--json", "one document")
    .addHelpText("after", '\nExample:\n  $ mesh freeze --reason "the data centre moves"')
    .action((node: string | undefined, options: { reason?: string; json?: boolean }) =>
      run(() => setFreeze(app, "freeze", node, options)),
    );
}

export async function setFreeze(
  app: App,
  verb: "freeze" | "unfreeze",
  node: string | undefined,
  options: { reason?: string; json?: boolean },
): Promise<number> {
  return app.withLink(async (link) => {
    const body = {
      ...(node ? { node } : {}),
      ...(options.reason ? { reason: options.reason } : {}),
      by: app.config.user,
    };
    const doc = await link.controller(verb, body);
    if (options.json) app.out.json(doc);
    else app.out.print(`${node ?? "the mesh"} is ${verb === "freeze" ? "frozen" : "not frozen"}`);
    return EXIT.done;
  });
}
