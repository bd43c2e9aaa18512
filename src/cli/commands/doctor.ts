import type { Command } from "commander";
import type { App, Run } from "../app.ts";
import { type Check, examine } from "../doctor.ts";
import { EXIT } from "../exit.ts";

export function define(command: Command, app: App, run: Run): void {
  command
    .option("--json", "one document")
    .addHelpText("after", "\nExample:\n  $ mesh doctor")
    .action((options: { json?: boolean }) =>
      run(async () => {
        const checks = await examine(app);
        if (options.json) app.out.json({ checks });
        else app.out.print(checks.map((check) => line(app, check)).join("\n"));
        return checks.some((check) => check.state === "bad") ? EXIT.failed : EXIT.done;
      }),
    );
}

function line(app: App, check: Check): string {
  const word = {
    good: app.paint("green", "good"),
    note: app.paint("yellow", "note"),
    bad: app.paint("red", "bad "),
  }[check.state];
  return `${word}  ${check.name}: ${check.detail}${check.remedy ? `; ${check.remedy}` : ""}`;
}
