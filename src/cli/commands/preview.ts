import type { Command } from "commander";
import type { PreviewDocument } from "../../composition/preview.ts";
import type { App, Run } from "../app.ts";
import type { StatusDoc } from "../documents.ts";
import { BadArgument } from "../errors.ts";
import { EXIT } from "../exit.ts";
import { previewMarkdown, previewText } from "../preview-text.ts";

interface Options {
  against?: string;
  live?: boolean;
  markdown?: boolean;
  json?: boolean;
}

export function define(command: Command, app: App, run: Run): void {
  command
    .argument("[catalogue]", "a work tree as it is, or a repository with #REF", ".")
    .option("--against <ref>", "a branch, tag or commit of the same repository")
    .option("--live", "against what the mesh was last sent; needs the controller")
    .option("--markdown", "for a comment on a pull request")
    .option("--json", "one document")
    .addHelpText(
      "after",
      "\nExit code 3: the guard would wait.\n\nExample:\n  $ mesh preview . --against origin/main",
    )
    .action((target: string, options: Options) => run(() => show(app, target, options)));
}

async function show(app: App, target: string, options: Options): Promise<number> {
  const against = options.live ? await deployed(app) : options.against;
  if (!against) {
    throw new BadArgument({
      what: "preview",
      found: "nothing to compare with",
      allowed: "--against REF or --live",
    });
  }
  const { previewOf } = await import("../preview.ts");
  const document: PreviewDocument = await previewOf(target, against);
  if (options.json) app.out.json(document);
  else if (options.markdown) app.out.print(previewMarkdown(document));
  else app.out.print(previewText(document, app.paint));
  if (document.problems.length > 0) return EXIT.failed;
  return document.guard.length > 0 ? EXIT.notConverged : EXIT.done;
}

/** The newest commit that the mesh was sent. */
async function deployed(app: App): Promise<string> {
  const status = await app.withLink((link) => link.controller<StatusDoc>("status", {}));
  const { deployed: commit } = status.catalogue;
  if (!commit) {
    throw new BadArgument({
      what: "--live",
      found: "a mesh that was sent nothing yet",
      allowed: "--against REF",
    });
  }
  return commit;
}
