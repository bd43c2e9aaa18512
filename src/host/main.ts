import { Command, CommanderError } from "commander";
import { messageOf } from "../errors.ts";
import { VERSION } from "../version.ts";
import { readEnvironment } from "./config.ts";

const environment = readEnvironment();
const out = (line: string) => void process.stdout.write(`${line}\n`);
const err = (line: string) => void process.stderr.write(`${line}\n`);

const program = new Command("mesh-host")
  .description("Keeps one machine as its declaration says.")
  .version(VERSION, "--version")
  .exitOverride()
  .showSuggestionAfterError()
  .addHelpText("after", "\nExample:\n  mesh-host run --node web-1 --context /etc/mesh/context.json");

program
  .command("run")
  .description("pull, apply and supervise what is declared for this node, until SIGTERM")
  .requiredOption("--node <name>", "the node's name in the catalogue")
  .option("--root <dir>", "map every declared path below this directory", "/")
  .option("--context <file>", "the context.json that `mesh up` wrote")
  .addHelpText("after", "\nExample:\n  mesh-host run --node web-1 --context /etc/mesh/context.json")
  .action(async (options: { node: string; root: string; context?: string }) => {
    const { runHost } = await import("./run.ts");
    process.exitCode = await runHost({ ...options, context: options.context ?? null }, environment);
    // What was awaited of programs that live on must not keep the host.
    process.exit();
  });

program
  .command("apply")
  .description("apply a declaration once; `mesh node NAME --declaration` prints one")
  .argument("<file>", "the declaration (JSON), - for standard input")
  .option("--noop", "print what would change and change nothing", false)
  .option("--root <dir>", "map every declared path below this directory", "/")
  .option("--json", "one JSON document", false)
  .addHelpText("after", "\nExample:\n  mesh node web-1 --declaration | mesh-host apply - --noop")
  .action(async (file: string, options: { noop: boolean; root: string; json: boolean }) => {
    const { applyFile } = await import("./apply.ts");
    process.exitCode = await applyFile({ file, ...options }, environment, { out, err });
    process.exit();
  });

program
  .command("status")
  .description("what the host of this machine last said of itself")
  .option("--root <dir>", "the root that the host works below", "/")
  .option("--json", "one JSON document", false)
  .addHelpText("after", "\nExample:\n  mesh-host status --root .mesh/nodes/web-1/root")
  .action(async (options: { root: string; json: boolean }) => {
    const [{ placeAt }, { showStatus }] = await Promise.all([import("./place.ts"), import("./status.ts")]);
    process.exitCode = showStatus(placeAt(options.root, false), options.json, out);
  });

program
  .command("stop-workloads")
  .description("stop every process that this host supervises; a host that is started again starts them")
  .option("--root <dir>", "the root that the host works below", "/")
  .addHelpText("after", "\nExample:\n  mesh-host stop-workloads --root .mesh/nodes/web-1/root")
  .action(async (options: { root: string }) => {
    const { stopWorkloads } = await import("./stop.ts");
    await stopWorkloads(options.root, environment, out);
    process.exit();
  });

process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code !== "EPIPE") throw error;
  process.exit();
});
try {
  await program.parseAsync();
} catch (error) {
  if (error instanceof CommanderError) process.exitCode = error.exitCode === 0 ? 0 : 2;
  else {
    err(`mesh-host: ${messageOf(error)}`);
    process.exit(1);
  }
}
