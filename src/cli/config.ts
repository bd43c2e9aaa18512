/** What the environment says to `mesh`. Read once, here. */
export interface CliConfig {
  context: string | null;
  catalogue: string | null;
  ref: string;
  store: string | null;
  broker: string | null;
  tokenFile: string | null;
  colour: boolean;
  /** Who is asking, for freezes, confirms and stops. */
  user: string;
}

/** @param tty whether stdout is a terminal: colours are used only there, and not where NO_COLOR is set */
export function readCliConfig(env: NodeJS.ProcessEnv, tty: boolean): CliConfig {
  const text = (name: string) => env[name] || null;
  return {
    context: text("MESH_CONTEXT"),
    catalogue: text("MESH_CATALOGUE"),
    ref: text("MESH_REF") ?? "main",
    store: text("MESH_STORE"),
    broker: text("MESH_BROKER"),
    tokenFile: text("MESH_CATALOGUE_TOKEN_FILE"),
    colour: tty && !text("NO_COLOR") && env.TERM !== "dumb",
    user: text("SUDO_USER") ?? text("USER") ?? text("LOGNAME") ?? "operator",
  };
}

/** The environment of this process, for the parts `mesh up` starts and for `readCliConfig`. */
export function environment(): NodeJS.ProcessEnv {
  return process.env;
}
