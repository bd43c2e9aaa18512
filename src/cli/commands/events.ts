import { setTimeout as delay } from "node:timers/promises";
import type { Command } from "commander";
import type { App, Run } from "../app.ts";
import type { EventDoc } from "../documents.ts";
import { EXIT } from "../exit.ts";
import type { Link } from "../link.ts";
import type { Paint } from "../table.ts";

interface EventsDoc {
  events: EventDoc[];
  next: number | null;
}

export function define(command: Command, app: App, run: Run): void {
  command
    .option("-f, --follow", "go on with new events")
    .option("--json", "one document; with -f one a line")
    .addHelpText("after", "\nExample:\n  $ mesh events -f")
    .action((options: { follow?: boolean; json?: boolean }) =>
      run(() => app.withLink((link) => show(app, link, options))),
    );
}

async function show(app: App, link: Link, options: { follow?: boolean; json?: boolean }): Promise<number> {
  if (options.follow) app.out.endWithReader();
  let doc = await link.controller<EventsDoc>("events", { limit: 100 });
  for (;;) {
    if (options.json && !options.follow) app.out.json(doc);
    else
      for (const event of doc.events)
        options.json ? app.out.json(event, true) : app.out.print(line(event, app.paint));
    if (!options.follow) return EXIT.done;
    await delay(500);
    doc = await link.controller<EventsDoc>("events", {
      ...(doc.next === null ? {} : { after: doc.next }),
      limit: 1000,
    });
  }
}

function line(event: EventDoc, paint: Paint): string {
  const bad = ["failed", "refused", "halted", "rolled-back"].includes(event.kind);
  const kind = event.kind.padEnd(11);
  const subject = event.resource ? `${event.resource}  ` : "";
  return `${paint("grey", event.at)}  ${event.node}  ${bad ? paint("red", kind) : kind}  ${subject}${event.detail}`;
}
