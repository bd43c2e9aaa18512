import type { Catalogue, ModuleVersion } from "../catalogue/catalogue.ts";
import type { MeshFile, SettingValue } from "../catalogue/schema/mesh.ts";
import type { DeclaredResource } from "../resources/declared.ts";

/** A module as placed on one node, with every setting resolved (mesh.json < group < node). */
export interface PlacedModule {
  version: ModuleVersion;
  settings: Readonly<Record<string, SettingValue>>;
  /**
   * Only for a module kept at an older version: the last values of seats, by name ("host:port"), as it was sent with;
   * used for a seat that the new catalogue no longer has.
   */
  lastSeats?: Readonly<Record<string, string>>;
  /** Only for a module kept at what it was sent with: the node's address then. */
  address?: string;
  /** Kept although the new catalogue no longer places it here: it goes in tier 2, and gives way to another holder of its seats. */
  leaving?: boolean;
  /** Full ids that this version declares but that were taken by something new: not sent any more. */
  without?: ReadonlySet<string>;
}

/** What a node was last sent of one resource, for references whose target is gone. */
export interface LastResource {
  digest: string;
  path: string | null;
}

/** One node as composition sees it. `modules` keyed by module name. */
export interface NodeView {
  name: string;
  address: string;
  labels: Readonly<Record<string, string>>;
  mode: "enforce" | "observe";
  retire: boolean;
  modules: ReadonlyMap<string, PlacedModule>;
  /**
   * Full ids of resources that new versions no longer declare but that this tier still keeps, as they were sent
   * (their removal belongs to tier 2, unless something new claims what they hold).
   */
  kept: ReadonlyArray<DeclaredResource>;
  /** By full id: the ids of recorded resources that must be gone before it is applied. */
  takes?: ReadonlyMap<string, readonly string[]>;
  last?: ReadonlyMap<string, LastResource>;
}

/** What is composed: a catalogue with placement and settings resolved; also the mixed catalogues Mt of a plan. */
export interface MeshView {
  mesh: MeshFile;
  /** A mixed catalogue of a plan's tier: references that only a later tier brings are no problem. */
  mixed: boolean;
  locate: Catalogue["locate"];
  nodes: ReadonlyMap<string, NodeView>;
}

/** The auto ports in use: number by `node`, then `module/port`. Numbers stay while the pair is declared. */
export type PortTable = ReadonlyMap<string, ReadonlyMap<string, number>>;

/** What composition knows beside the catalogue. `seats`: the context's addresses of mesh-store, mesh-broker, mesh-controller, mesh-builder. */
export interface CompositionFacts {
  seats: Readonly<Record<string, string>>;
  ports: PortTable;
  /** For a tier of a plan: the addresses that seats have once the plan is done, for those that nobody holds yet. */
  finalSeats?: ReadonlyMap<string, string>;
  /** For a tier of a plan: what a node was last told of a seat; it stays until the tier that moves the seat. */
  lastSeat?: (node: string, seat: string) => string | undefined;
}

/**
 * What a node was last sent, as the inventory keeps it (JSON): enough to compose its old modules again. `partial`: a plan's
 * tier left some resources out or kept some of older versions, so that only the last body tells which there were.
 */
export interface SentView {
  partial?: boolean;
  /** By full id, as in the last body: what its resources take. */
  takes?: Record<string, string[]>;
  address: string;
  labels: Record<string, string>;
  mode: "enforce" | "observe";
  modules: Array<{
    name: string;
    tree: string;
    settings: Record<string, SettingValue>;
    seats: Record<string, string>;
    /** Where it differs from the node's: the address it was sent with. */
    address?: string;
  }>;
}
