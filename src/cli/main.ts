import { realpathSync } from "node:fs";
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import { CommanderError } from "commander";
import { messageOf } from "../errors.ts";
import { VERSION } from "../version.ts";
import { App, exitOf } from "./app.ts";
import { environment, readCliConfig } from "./config.ts";
import { EXIT } from "./exit.ts";
import { Output } from "./output.ts";
import { buildProgram } from "./program.ts";

async function main(argv: string[]): Promise<number> {
  const tty = Boolean(process.stdout.isTTY);
  const config = readCliConfig(environment(), tty);
  const out = new Output({ tty, colour: config.colour });
  const programs = dirname(realpathSync(fileURLToPath(import.meta.url)));
  const app = new App({ config, out, programs, version: VERSION });
  let code: number = EXIT.done;
  try {
    const program = await buildProgram(app, argv, async (action) => {
      code = await action();
    });
    await program.parseAsync(argv, { from: "user" });
  } catch (error) {
    if (error instanceof CommanderError) code = error.exitCode === 0 ? EXIT.done : EXIT.usage;
    else {
      out.note(`mesh: ${messageOf(error)}`);
      code = exitOf(error);
    }
  }
  return out.finish(code);
}

await main(process.argv.slice(2));
