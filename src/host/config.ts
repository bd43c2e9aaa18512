/** What `mesh-host` takes from its environment, read once. */
export interface HostEnvironment {
  broker: string | undefined;
  brokerFile: string | undefined;
  context: string | undefined;
  log: string;
  /** The name of a point at which the program dies (tests). */
  fault: string | undefined;
  path: string;
  lang: string | undefined;
}

export function readEnvironment(env: NodeJS.ProcessEnv = process.env): HostEnvironment {
  return {
    broker: env.MESH_BROKER || undefined,
    brokerFile: env.MESH_BROKER_FILE || undefined,
    context: env.MESH_CONTEXT || undefined,
    log: env.MESH_LOG || "info",
    fault: env.MESH_FAULT || undefined,
    path: env.PATH || "/usr/local/bin:/usr/bin:/bin",
    lang: env.LANG || undefined,
  };
}
