import type { Command } from "commander";
import type { App, Run } from "../app.ts";
import type { PlanDoc } from "../documents.ts";
import { BadArgument } from "../errors.ts";
import { EXIT } from "../exit.ts";
import { ago, type Paint, short, state, table } from "../table.ts";

export function define(command: Command, app: App, run: Run): void {
  command
    .option("--json", "one document")
    .addHelpText(
      "after",
      "\nExamples:\n  $ mesh plans\n  $ mesh plans confirm 7\n  $ mesh plans skip 7 web-2",
    )
    .action((options: { json?: boolean }) =>
      run(() =>
        app.withLink(async (link) => {
          const doc = await link.controller<{ plans: PlanRow[] }>("plans", {});
          if (options.json) app.out.json(doc);
          else app.out.print(plansText(doc.plans, app.paint, Date.now()));
          return EXIT.done;
        }),
      ),
    );
  const acts: Array<[verb: string, summary: string]> = [
    ["stop", "send nothing more of this plan"],
    ["retry", "go on with a stopped or halted plan"],
    ["confirm", "let a plan go that the guard holds"],
  ];
  for (const [verb, summary] of acts) {
    command
      .command(verb)
      .description(summary)
      .argument("<id>", "the plan's number")
      .option("--json", "one document")
      .addHelpText("after", `\nExample:\n  $ mesh plans ${verb} 7`)
      .action((id: string, _options: unknown, self: Command) =>
        run(() => act(app, `plans-${verb}`, { id: planId(id) }, self.optsWithGlobals().json)),
      );
  }
  command
    .command("skip")
    .description("leave one node out of a plan")
    .argument("<id>", "the plan's number")
    .argument("<node>", "the node")
    .option("--json", "one document")
    .addHelpText("after", "\nExample:\n  $ mesh plans skip 7 web-2")
    .action((id: string, node: string, _options: unknown, self: Command) =>
      run(() => act(app, "plans-skip", { id: planId(id), node }, self.optsWithGlobals().json)),
    );
}

type PlanRow = Pick<PlanDoc, "id" | "commit" | "state" | "reason" | "createdAt" | "finishedAt"> & {
  subject?: string;
};

function plansText(plans: PlanRow[], paint: Paint, now: number): string {
  if (plans.length === 0) return "no plans yet";
  const rows = plans.map((plan) => [
    plan.id,
    state(paint, plan.state),
    short(plan.commit),
    `${ago(plan.createdAt, now)} ago`,
    plan.reason ?? plan.subject ?? "",
  ]);
  return table(["PLAN", "STATE", "COMMIT", "MADE", ""], rows, paint);
}

function planId(text: string): number {
  if (!/^[1-9]\d{0,8}$/.test(text))
    throw new BadArgument({ what: "plan", found: text, allowed: "a number such as 7" });
  return Number(text);
}

async function act(
  app: App,
  verb: string,
  body: { id: number; node?: string },
  json?: boolean,
): Promise<number> {
  return app.withLink(async (link) => {
    const doc = await link.controller<Partial<PlanDoc>>(verb, { ...body, by: app.config.user });
    if (json) app.out.json(doc);
    else
      app.out.print(
        `plan ${body.id}: ${verb.slice("plans-".length)} taken${doc.state ? `, ${doc.state}` : ""}`,
      );
    return EXIT.done;
  });
}
