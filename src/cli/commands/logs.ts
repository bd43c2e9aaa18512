import { setTimeout as delay } from "node:timers/promises";
import type { Command } from "commander";
import type { App, Run } from "../app.ts";
import { BadArgument } from "../errors.ts";
import { EXIT } from "../exit.ts";
import type { Link } from "../link.ts";

interface LogsDoc {
  lines: string[];
  position: unknown;
}
interface Options {
  follow?: boolean;
  lines: string;
  json?: boolean;
}

export function define(command: Command, app: App, run: Run): void {
  command
    .argument("<node>", "the node")
    .argument("<resource>", "the process, as module.id")
    .option("-f, --follow", "go on with new lines")
    .option("-n, --lines <count>", "so many of the last lines", "100")
    .option("--json", "one document; with -f one a line")
    .addHelpText("after", "\nExample:\n  $ mesh logs web-1 web.server -f")
    .action((node: string, resource: string, options: Options) =>
      run(() => app.withLink((link) => show(app, link, node, resource, options))),
    );
}

async function show(app: App, link: Link, node: string, resource: string, options: Options): Promise<number> {
  if (!/^\d{1,6}$/.test(options.lines)) {
    throw new BadArgument({ what: "--lines", found: options.lines, allowed: "a number such as 100" });
  }
  const lines = Number(options.lines);
  if (options.follow) app.out.endWithReader();
  let doc = await link.node<LogsDoc>(node, "logs", { resource, lines });
  for (;;) {
    if (options.json && (!options.follow || doc.lines.length > 0)) app.out.json(doc, options.follow);
    else for (const line of doc.lines) app.out.print(line);
    if (!options.follow) return EXIT.done;
    await delay(300);
    doc = await link.node<LogsDoc>(node, "logs", { resource, lines: 1000, after: doc.position });
  }
}
