import { Command, CommanderError } from "commander";
import { pino } from "pino";
import { MeshError, messageOf } from "../errors.ts";
import { openInventory } from "../inventory/index.ts";
import { VERSION } from "../version.ts";
import { type ControllerFlags, readConfig } from "./config.ts";
import { serve } from "./serve.ts";

const UNREACHABLE = new Set(["store-unreachable", "store-refused", "broker-unreachable"]);

const program = new Command("mesh-controller")
  .description("Composes the catalogue into declarations, plans their rollout, and folds what hosts report")
  .version(VERSION)
  .exitOverride()
  .addHelpText("after", "\nExample:\n  $ mesh-controller serve --context .mesh/context.json");

program
  .command("serve")
  .description("run a controller; of several, one is active and the others stand by")
  .option("--context <file>", "the mesh's context.json")
  .option("--http <port>", "PORT or HOST:PORT of /healthz and /readyz; a free port when it is taken")
  .addHelpText("after", "\nExample:\n  $ mesh-controller serve --context .mesh/context.json")
  .action(async (flags: ControllerFlags) => {
    const config = readConfig(flags);
    const log = pino({ level: config.log, base: { pid: process.pid } });
    const ending = new AbortController();
    for (const signal of ["SIGTERM", "SIGINT"] as const) process.on(signal, () => ending.abort());
    await serve(config, log, ending.signal);
  });

program
  .command("prepare")
  .description("bring the store's schema up to this release (it only expands), and end")
  .option("--context <file>", "the mesh's context.json")
  .addHelpText("after", "\nExample:\n  $ mesh-controller prepare --context .mesh/context.json")
  .action(async (flags: ControllerFlags) => {
    const config = readConfig(flags);
    const inventory = await openInventory(config.store, { name: "prepare" });
    await inventory.close();
    process.stdout.write(`the store's schema is that of ${VERSION}\n`);
  });

try {
  await program.parseAsync();
  process.exit(0);
} catch (error) {
  if (error instanceof CommanderError) process.exit(error.exitCode === 0 ? 0 : 2);
  process.stderr.write(`mesh-controller: ${messageOf(error)}\n`);
  process.exit(error instanceof MeshError && UNREACHABLE.has(error.code) ? 4 : 1);
}
