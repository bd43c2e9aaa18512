import { Argument, type Command } from "commander";
import type { App, Run } from "../app.ts";
import { EXIT } from "../exit.ts";
import { SCHEMA_KINDS, type SchemaKind, schemaOf } from "../schemas.ts";

export function define(command: Command, app: App, run: Run): void {
  command
    .addArgument(new Argument("<kind>", "what the schema describes").choices(SCHEMA_KINDS))
    .addHelpText("after", "\nExample:\n  $ mesh schema module > module.schema.json")
    .action((kind: SchemaKind) =>
      run(async () => {
        app.out.json(await schemaOf(kind));
        return EXIT.done;
      }),
    );
}
