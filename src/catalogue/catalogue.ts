import type { GroupFile } from "./schema/group.ts";
import type { MeshFile } from "./schema/mesh.ts";
import type { ModuleFile } from "./schema/module.ts";
import type { NodeFile } from "./schema/node.ts";

/**
 * One problem of a commit. `file` is relative to the catalogue's top; `line` and `column` count from 1 (0: the whole file);
 * `path` is the JSON path (`resources[2].mode`) or "". The message says what was found, what is allowed, the nearest right name.
 */
export interface Problem {
  file: string;
  line: number;
  column: number;
  path: string;
  message: string;
}

/**
 * A file that a module's `source` names. `sha256` is hex, `size` bytes. `bytes` are held when at most 8 KiB or when it is a
 * template; larger bodies are fetched again by `oid` when they are published.
 */
export interface SourceFile {
  oid: string;
  sha256: string;
  size: number;
  bytes: Buffer | null;
}

/** One module at one version. `tree` is the Git tree id of its folder: equal tree, equal module. */
export interface ModuleVersion {
  name: string;
  tree: string;
  manifest: ModuleFile;
  /** Keyed by the path inside the module, only those that a resource's `source` names. */
  sources: ReadonlyMap<string, SourceFile>;
}

/** A commit (or a plain folder) that was read whole and is valid. Objects of unchanged files are the same objects as in the catalogue before it. */
export interface Catalogue {
  /** 40 hex digits; null for a plain folder. */
  commit: string | null;
  subject: string;
  mesh: MeshFile;
  groups: ReadonlyMap<string, GroupFile>;
  nodes: ReadonlyMap<string, NodeFile>;
  modules: ReadonlyMap<string, ModuleVersion>;
  /** Where a problem of composition is shown: file, line and column of a JSON path in a catalogue file. */
  locate(file: string, path: ReadonlyArray<string | number>): { line: number; column: number };
}

export type CatalogueResult = { ok: true; catalogue: Catalogue } | Refused;

/**
 * `sound` holds the files that are good by themselves: what is wrong between those is told beside the problems.
 * `seats` are those of all its modules, bad ones too; null when that cannot be told.
 */
export interface Refused {
  ok: false;
  problems: Problem[];
  commit: string | null;
  subject: string;
  sound: Catalogue;
  seats: ReadonlySet<string> | null;
}
