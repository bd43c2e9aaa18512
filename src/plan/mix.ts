import type { ModuleVersion } from "../catalogue/catalogue.ts";
import { type Composer, createComposer } from "../composition/composer.ts";
import { sameRecord } from "../composition/resolve.ts";
import { finish, type Work } from "../composition/slices.ts";
import type { LastResource, MeshView, NodeView, PlacedModule, SentView } from "../composition/view.ts";
import type { DeclarationBody } from "../declaration/schema.ts";
import type { DeclaredResource } from "../resources/declared.ts";
import type { TierNumber } from "./model.ts";
import { takesOf } from "./takes.ts";

/** What nodes were last sent when the plan began. It stays the same for all three tiers of a plan. */
export interface SentState {
  sent: { get(node: string): SentView | undefined };
  /** Parsed manifests by Git tree id, as they are kept; null when one is lost. */
  versions: (tree: string) => ModuleVersion | null | undefined;
  /** Asked only for nodes that the merge changes. One without is changed in one step, by the first tier that is released. */
  lastBodies: { get(node: string): DeclarationBody | null | undefined };
}

/**
 * Mt, the catalogue that tier t sends: modules of a tier up to t as the new commit has them, all others, per node, as they
 * were last sent. What the new commit no longer has stays until tier 2, unless something new claims what it holds.
 */
export function mixView(
  next: MeshView,
  sent: SentState["sent"],
  versions: SentState["versions"],
  lastBodies: SentState["lastBodies"],
  tier: TierNumber,
  composer: Composer = createComposer(),
): MeshView {
  return finish(mixing(next, { sent, versions, lastBodies }, tier, composer));
}

export function* mixing(
  next: MeshView,
  state: SentState,
  tier: TierNumber,
  composer: Composer,
): Work<MeshView> {
  const nodes = new Map<string, NodeView>();
  for (const [name, node] of next.nodes) {
    nodes.set(name, mixNode(node, state, tier, composer));
    yield;
  }
  return { ...next, mixed: tier < 2, nodes };
}

function mixNode(next: NodeView, state: SentState, tier: TierNumber, composer: Composer): NodeView {
  const sent = state.sent.get(next.name);
  if (!sent) return tier === 2 ? next : upTo(next, tier);
  if (!sent.partial && sameModules(next, sent)) {
    return sent.takes ? { ...next, takes: new Map(Object.entries(sent.takes)) } : next;
  }
  const last = state.lastBodies.get(next.name);
  // Without its last body nothing is known of what it holds: it changes in one step.
  return last ? new NodeMix(next, { sent, last: last.resources }, state, tier, composer).view() : next;
}

/** A node that was never sent anything: the modules up to the tier. */
function upTo(next: NodeView, tier: TierNumber): NodeView {
  const modules = new Map([...next.modules].filter(([, placed]) => placed.version.manifest.tier <= tier));
  return modules.size === next.modules.size ? next : { ...next, modules };
}

type SentModule = SentView["modules"][number];

function sameModules(next: NodeView, sent: SentView): boolean {
  if (next.modules.size !== sent.modules.length) return false;
  return sent.modules.every((module) => isAsSent(next.modules.get(module.name), module, sent, next.address));
}

function isAsSent(
  placed: PlacedModule | undefined,
  module: SentModule,
  sent: SentView,
  address: string,
): boolean {
  return (
    placed !== undefined &&
    placed.version.tree === module.tree &&
    (module.address ?? sent.address) === address &&
    sameRecord(placed.settings, module.settings)
  );
}

/** One node that the plan changes, in one tier. */
class NodeMix {
  readonly #next: NodeView;
  readonly #sent: SentView;
  readonly #state: SentState;
  readonly #tier: TierNumber;
  readonly #composer: Composer;
  readonly #last: readonly DeclaredResource[];
  readonly #modules = new Map<string, PlacedModule>();
  readonly #fresh: PlacedModule[] = [];
  readonly #old: PlacedModule[] = [];

  constructor(
    next: NodeView,
    held: { sent: SentView; last: readonly DeclaredResource[] },
    state: SentState,
    tier: TierNumber,
    composer: Composer,
  ) {
    this.#next = next;
    this.#sent = held.sent;
    this.#state = state;
    this.#tier = tier;
    this.#composer = composer;
    this.#last = held.last;
  }

  view(): NodeView {
    this.#place();
    const { takes, taken } = this.#takes();
    const modules = new Map<string, PlacedModule>();
    for (const [name, placed] of this.#modules) modules.set(name, this.#without(placed, taken));
    const last = new Map<string, LastResource>(
      this.#last.map((r) => [r.id, { digest: r.digest, path: "path" in r ? r.path : null }]),
    );
    return { ...this.#next, modules, takes, last, kept: this.#tier < 2 ? this.#kept(modules, taken) : [] };
  }

  /** Each module at its new or its old version. */
  #place(): void {
    const sent = new Map(this.#sent.modules.map((module) => [module.name, module]));
    for (const [name, placed] of this.#next.modules) {
      const module = sent.get(name);
      const asSent = module !== undefined && isAsSent(placed, module, this.#sent, this.#next.address);
      if (asSent || placed.version.manifest.tier <= this.#tier) {
        this.#modules.set(name, placed);
        if (!asSent) this.#fresh.push(placed);
      } else if (module) this.#keep(module, false);
    }
    for (const module of this.#sent.modules) {
      const old = this.#oldVersion(module);
      if (old) this.#old.push(old);
      if (this.#tier < 2 && !this.#next.modules.has(module.name)) this.#keep(module, true);
    }
  }

  #keep(module: SentModule, leaving: boolean): void {
    const old = this.#oldVersion(module);
    // A version that is lost cannot be composed again: its resources are kept as they were sent.
    if (old) this.#modules.set(module.name, leaving ? { ...old, leaving } : old);
  }

  #oldVersion(module: SentModule): PlacedModule | null {
    const version = this.#state.versions(module.tree);
    if (!version) return null;
    const address = module.address ?? this.#sent.address;
    return { version, settings: module.settings, lastSeats: module.seats, address };
  }

  #takes(): { takes: Map<string, readonly string[]>; taken: Set<string> } {
    const declared = new Set<string>();
    for (const { version } of this.#fresh)
      for (const id of this.#composer.compiled(version).byId.keys()) declared.add(id);
    const staying = (id: string) => {
      const placed = this.#next.modules.get(id.split(".", 1)[0] as string);
      return placed !== undefined && this.#composer.compiled(placed.version).byId.has(id);
    };
    const found = takesOf({
      composer: this.#composer,
      fresh: this.#fresh,
      old: this.#old,
      last: this.#last,
      declared,
      staying,
    });
    const taken = new Set([...found.values()].flat());
    const takes = new Map<string, readonly string[]>(found);
    // What an unchanged resource took before stays written, so that its node is not sent the same thing again.
    for (const [id, ids] of Object.entries(this.#sent.takes ?? {})) {
      if (!declared.has(id)) takes.set(id, [...new Set([...(takes.get(id) ?? []), ...ids])].sort());
    }
    return { takes, taken };
  }

  /** A module at its old version leaves out what was taken, and what it was not sent with either. */
  #without(placed: PlacedModule, taken: ReadonlySet<string>): PlacedModule {
    if (this.#fresh.includes(placed) || this.#last.length === 0) return placed;
    const had = new Set(this.#last.map((resource) => resource.id));
    const ids = [...this.#composer.compiled(placed.version).byId.keys()];
    const without = new Set(ids.filter((id) => taken.has(id) || (placed.lastSeats && !had.has(id))));
    return without.size === 0 ? placed : { ...placed, without };
  }

  /** What was sent and is declared no more, as it was sent. */
  #kept(modules: ReadonlyMap<string, PlacedModule>, taken: ReadonlySet<string>): DeclaredResource[] {
    const declared = new Set<string>();
    for (const { version } of modules.values()) {
      for (const id of this.#composer.compiled(version).byId.keys()) declared.add(id);
    }
    return this.#last.filter(({ id }) => !declared.has(id) && !taken.has(id));
  }
}
