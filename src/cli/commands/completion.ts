import { Argument, type Command } from "commander";
import type { App, Run } from "../app.ts";
import { completionScript, SHELLS, type Shell } from "../completion.ts";
import { EXIT } from "../exit.ts";

export function define(command: Command, app: App, run: Run): void {
  command
    .addArgument(new Argument("<shell>", "the shell").choices(SHELLS))
    .addHelpText("after", "\nExample:\n  $ source <(mesh completion bash)")
    .action((shell: Shell) =>
      run(async () => {
        const { buildProgram } = await import("../program.ts");
        app.out.print(completionScript(shell, await buildProgram(app, [], async () => {}, true)));
        return EXIT.done;
      }),
    );
}
