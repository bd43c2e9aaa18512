import { join, resolve } from "node:path";

/** Where everything of the mesh in one folder is. */
export interface Layout {
  dir: string;
  run: string;
  logs: string;
  nodes: string;
  context: string;
  /** What `mesh up` must remember to start the same parts again (0600: a credential is in it). */
  state: string;
  key: string;
  catalogue: string;
  pidFile(part: string): string;
  /** The incarnation behind the pid file. */
  lifeFile(part: string): string;
  logFile(part: string): string;
  nodeRoot(node: string): string;
}

export function layoutOf(folder: string): Layout {
  const dir = resolve(folder);
  return {
    dir,
    run: join(dir, "run"),
    logs: join(dir, "logs"),
    nodes: join(dir, "nodes"),
    context: join(dir, "context.json"),
    state: join(dir, "up.json"),
    key: join(dir, "keys", "controller.pem"),
    catalogue: join(dir, "catalogue.git"),
    pidFile: (part) => join(dir, "run", `${part}.pid`),
    lifeFile: (part) => join(dir, "run", `${part}.life`),
    logFile: (part) => join(dir, "logs", `${part}.log`),
    nodeRoot: (node) => join(dir, "nodes", node, "root"),
  };
}
