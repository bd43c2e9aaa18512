import type { DeclaredResource } from "./declared.ts";

/** Where a host works: root mapping and who it is. With root "/" paths and accounts are real. */
export interface HostPlace {
  root: string;
  /** root is "/". */
  real: boolean;
  invoker: { uid: number; gid: number; name: string };
  /** A declared absolute path as it is on this machine (below `root`). */
  realPath(declared: string): string;
  /** The host's own folder: <root>/var/lib/mesh-host. */
  stateDir: string;
}

/**
 * What a driver saw of one declared resource. `fields` name what differs ("mode", "content"); `detail` is one line for people.
 * `kept`: why this machine leaves the resource as it is (an account under another root); shown with the state `kept`.
 */
export interface Observation {
  state: "absent" | "same" | "differs";
  fields: string[];
  detail: string;
  kept?: string;
}

/** What applying did. `record` is JSON: what the host must remember to observe cheaply, and to remove only what it made. `note` is shown, with state `kept` when `kept`. */
export interface Applied<R> {
  record: R;
  changed: boolean;
  kept?: boolean;
  note?: string | null;
}

/** `kept`: why it was left (account without "remove", directory that is not empty, file changed since and backed up). */
export interface Removed {
  kept: string | null;
  note: string | null;
}

/**
 * The host side of one resource kind. `observe` never writes and never throws for one bad resource (it maps it to the error);
 * `apply` and `remove` throw a MeshError with the cause. Every one of them may be repeated after a crash at any point.
 */
export interface Driver<D extends DeclaredResource, R> {
  readonly type: D["type"];
  observe(
    declared: readonly D[],
    records: ReadonlyMap<string, R>,
  ): Promise<ReadonlyMap<string, Observation | Error>>;
  apply(declared: D, record: R | null, observation: Observation): Promise<Applied<R>>;
  remove(id: string, record: R): Promise<Removed>;
}
