import { Command } from "commander";
import type { App, Run } from "./app.ts";
import { COMMANDS } from "./commands.ts";

/**
 * The commander program. Only the command that `argv` names is read from its file; the others are there by name and
 * summary, for `--help` and for "did you mean".
 * @param whole reads every command: for completion and the reference in docs/cli.md
 */
export async function buildProgram(app: App, argv: string[], run: Run, whole = false): Promise<Command> {
  const program = new Command("mesh");
  base(program);
  program
    .description("Runs the machines that a catalogue in Git declares.")
    .version(app.version, "-V, --version")
    .option(
      "--context <file>",
      "the context.json of the mesh (default: MESH_CONTEXT, .mesh/context.json upwards)",
    )
    .hook("preAction", () => {
      app.contextFlag = program.opts<{ context?: string }>().context;
    })
    .addHelpText("after", "\nExample:\n  $ mesh up --catalogue examples-repo --detach && mesh status");
  const wanted = commandName(argv);
  for (const [name, entry] of Object.entries(COMMANDS)) {
    const command = base(program.command(name).description(entry.summary));
    if (whole || name === wanted || wanted === "help") (await entry.load()).define(command, app, run);
  }
  return program;
}

/** Errors as one line on stderr, and thrown rather than exiting: the caller drains stdout first. */
function base(command: Command): Command {
  return command
    .exitOverride()
    .showSuggestionAfterError(true)
    .configureOutput({
      writeErr: (text) => process.stderr.write(text),
      outputError: (text, write) =>
        write(`${oneLine(text)} See \`${command.parent ? `mesh ${command.name()}` : "mesh"} --help\`.\n`),
    });
}

function oneLine(text: string): string {
  const line = text
    .trim()
    .replace(/^error: /, "mesh: ")
    .replace(/\s*\n\s*/g, " ");
  return /[.)?]$/.test(line) ? line : `${line}.`;
}

function commandName(argv: string[]): string | null {
  for (let i = 0; i < argv.length; i++) {
    const word = argv[i]!;
    if (word === "--context") i++;
    else if (!word.startsWith("-")) return word;
  }
  return null;
}
