import type { Command } from "commander";
import { type Context, ContextMissing, emptyContext, findContext, readContext } from "../context.ts";
import { type CliConfig, environment } from "./config.ts";
import { EXIT } from "./exit.ts";
import type { Link } from "./link.ts";
import type { Output } from "./output.ts";
import { type Paint, painter } from "./table.ts";

/** What every command gets. `programs` is the folder of the three programs (dist/), `version` the package's. */
export class App {
  readonly config: CliConfig;
  readonly out: Output;
  readonly paint: Paint;
  readonly programs: string;
  readonly version: string;
  readonly env = environment();
  /** The value of the global option --context. */
  contextFlag: string | undefined;

  constructor(parts: { config: CliConfig; out: Output; programs: string; version: string }) {
    this.config = parts.config;
    this.out = parts.out;
    this.paint = painter(parts.config.colour);
    this.programs = parts.programs;
    this.version = parts.version;
  }

  /** The context that is used, and its file (null where only the environment names the parts). */
  context(): { context: Context; file: string | null } {
    const { config } = this;
    const found = findContext({
      flag: this.contextFlag,
      env: config.context ?? undefined,
      cwd: process.cwd(),
    });
    if (!found.file && !config.broker) throw new ContextMissing({ tried: found.tried });
    const context = found.file ? readContext(found.file) : emptyContext();
    return {
      file: found.file,
      context: {
        ...context,
        broker: config.broker ?? context.broker,
        store: config.store ?? context.store,
        catalogue: config.catalogue ?? context.catalogue,
      },
    };
  }

  /** Opens a link to the mesh, hands it over, and closes it whatever happens. */
  async withLink<T>(use: (link: Link) => Promise<T>): Promise<T> {
    const { openLink } = await import("./link.ts");
    const link = await openLink(this.context().context);
    try {
      return await use(link);
    } finally {
      await link.close();
    }
  }
}

/** One file per command exports this. It resolves to the exit code; what it throws becomes one line and an exit code. */
export interface CommandFile {
  define(command: Command, app: App, run: Run): void;
}

export type Run = (action: () => Promise<number>) => Promise<void>;

const UNREACHABLE = new Set([
  "broker-unreachable",
  "controller-unreachable",
  "store-unreachable",
  "mesh-down",
]);

/** The exit code of an error: 4 where a part of the mesh cannot be reached, 2 for a wrong argument, 1 for the rest. */
export function exitOf(error: unknown): number {
  const code = (error as { code?: unknown }).code;
  if (typeof code !== "string") return EXIT.failed;
  if (UNREACHABLE.has(code)) return EXIT.unreachable;
  if (code === "bad-argument") return EXIT.usage;
  return EXIT.failed;
}
