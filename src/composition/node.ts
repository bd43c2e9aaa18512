import type { ModuleVersion } from "../catalogue/catalogue.ts";
import { canonicalJson } from "../declaration/canonical.ts";
import type { DeclarationBody } from "../declaration/schema.ts";
import type { DeclaredResource } from "../resources/declared.ts";
import { hostPart } from "./address.ts";
import { mayStore, type StoredObject, sha256 } from "./chunks.ts";
import { digestIn, type FilledModule } from "./fill.ts";
import type { CompiledModule } from "./module.ts";
import { portOf } from "./seats.ts";
import type { NodeShape, Placed } from "./shape.ts";
import type { NodeView, SentView } from "./view.ts";

/** What one node's declaration is made from. `seats` are the values of those that its modules use. */
export interface NodeInputs {
  view: NodeView;
  shape: NodeShape;
  ports: ReadonlyMap<string, number>;
  seats: ReadonlyMap<string, string>;
  host: DeclarationBody["host"];
}

/** Fills modules; keeps what many nodes share, and what one node had before. */
export interface Filler {
  fill(
    node: string,
    compiled: CompiledModule,
    values: readonly string[],
    foreign: (id: string) => string,
  ): FilledModule;
}

/**
 * One node's declaration. Only its revision is held; the body is made again when it is asked for, so that ten thousand nodes
 * do not hold ten thousand bodies.
 */
export class ComposedNode {
  readonly node: string;
  readonly #inputs: NodeInputs;
  readonly #filler: Filler;
  #body: WeakRef<DeclarationBody> | null = null;
  #revision: string | null = null;
  #sent: SentView | null = null;

  constructor(inputs: NodeInputs, filler: Filler) {
    this.node = inputs.view.name;
    this.#inputs = inputs;
    this.#filler = filler;
  }

  /** sha256 (hex) over the canonical JSON of `body`. */
  get revision(): string {
    this.#revision ??= sha256(this.text());
    return this.#revision;
  }

  /** The canonical JSON of the body. */
  text(): string {
    const { view, shape, host } = this.#inputs;
    let plain = headOf(view, shape, host);
    let separator = "";
    for (const item of shape.modules) {
      const { text } = this.#filled(item);
      if (text === "") continue;
      plain += separator + text;
      separator = ",";
    }
    plain += "]}";
    return isPlain(view, shape) ? plain : canonicalJson(adjust(JSON.parse(plain) as DeclarationBody, view));
  }

  get body(): DeclarationBody {
    const held = this.#body?.deref();
    if (held) return held;
    const body = JSON.parse(this.text()) as DeclarationBody;
    this.#body = new WeakRef(body);
    return body;
  }

  /** Bodies that are in the object store, by sha256 (hex): their bytes, or the object id in Git to read them by. Sizes in bytes. */
  get objects(): ReadonlyMap<string, StoredObject> {
    const objects = new Map<string, StoredObject>();
    for (const item of this.#inputs.shape.modules) {
      const { compiled } = item;
      const alike = compiled.bodies.length === 0 || !mayStore(compiled.bodies, this.#values(item));
      const own = alike ? compiled.objects : this.#filled(item).objects;
      for (const [sha, object] of own) objects.set(sha, object);
    }
    return objects;
  }

  /** The module versions it is made of: what the inventory keeps by tree. */
  get versions(): ModuleVersion[] {
    return this.#inputs.shape.modules.map(({ placed }) => placed.version);
  }

  /** No module on it. */
  get isEmpty(): boolean {
    return this.#inputs.shape.modules.length === 0 && this.#inputs.view.kept.length === 0;
  }

  /** What it holds, told without making its body: the ids, and how many of them run. */
  get outline(): { ids: string[]; running: number } {
    const { shape, view } = this.#inputs;
    const ids: string[] = [];
    let running = 0;
    for (const { compiled, placed } of shape.modules) {
      for (const { id, type, service } of compiled.resources) {
        if (placed.without?.has(id)) continue;
        ids.push(id);
        if (type === "container" || (type === "process" && service)) running += 1;
      }
    }
    for (const kept of view.kept) {
      ids.push(kept.id);
      if (kept.type === "process" && kept.run !== "once") running += 1;
    }
    return { ids, running };
  }

  /** Its auto ports, by `module/port`. */
  get ports(): ReadonlyMap<string, number> {
    return this.#inputs.ports;
  }

  /** What the inventory keeps once this is sent. */
  get sent(): SentView {
    this.#sent ??= this.#view();
    return this.#sent;
  }

  #view(): SentView {
    const { view, shape, seats } = this.#inputs;
    return {
      address: view.address,
      labels: { ...view.labels },
      mode: view.mode,
      ...(view.kept.length > 0 || shape.modules.some(({ placed }) => placed.without?.size)
        ? { partial: true }
        : {}),
      ...(view.takes?.size
        ? { takes: Object.fromEntries([...view.takes].map(([id, ids]) => [id, [...ids]])) }
        : {}),
      modules: shape.modules.map(({ placed, compiled }) => ({
        name: compiled.name,
        tree: placed.version.tree,
        settings: placed.settings as SentView["modules"][number]["settings"],
        seats: Object.fromEntries(
          compiled.slots
            .filter((s) => s.kind === "seat")
            .map((s) => [s.name, this.#seat(s.name, placed, seats)]),
        ),
        ...(placed.address !== undefined && placed.address !== view.address
          ? { address: placed.address }
          : {}),
      })),
    };
  }

  #filled(item: Placed): FilledModule {
    return this.#filler.fill(this.node, item.compiled, this.#values(item), (id) =>
      this.#foreignDigest(id, new Set()),
    );
  }

  #seat(seat: string, placed: Placed["placed"], seats: ReadonlyMap<string, string>): string {
    return seats.get(seat) ?? placed.lastSeats?.[seat] ?? "";
  }

  #values(item: Placed): string[] {
    const { view, ports, seats } = this.#inputs;
    const { placed, compiled } = item;
    const address = placed.address ?? view.address;
    return compiled.slots.map(({ kind, name }) => {
      if (kind === "setting") return String(placed.settings[name] ?? "");
      if (kind === "port") return String(portOf(item, name, ports) ?? 0);
      if (kind === "seat") return this.#seat(name, placed, seats);
      if (kind === "node") return view.name;
      if (kind === "path") return this.#foreignPath(name);
      return kind === "host" ? hostPart(address) : address;
    });
  }

  #foreignPath(id: string): string {
    const [owner = "", own = ""] = id.split(".", 2);
    const { shape, view } = this.#inputs;
    return shape.byName.get(owner)?.compiled.paths.get(own) ?? view.last?.get(id)?.path ?? "";
  }

  /** The digest of a resource of another module here; one that is gone keeps the digest it was last sent with. */
  #foreignDigest(id: string, asked: Set<string>): string {
    const { shape, view } = this.#inputs;
    const item = shape.byName.get(id.split(".", 1)[0] as string);
    if (!item?.compiled.byId.has(id) || item.placed.without?.has(id)) return view.last?.get(id)?.digest ?? "";
    // Asked twice only in a cycle of restartOn, which is a problem of its own.
    if (asked.has(id)) return "";
    asked.add(id);
    return digestIn(item.compiled, id, this.#values(item), (next) => this.#foreignDigest(next, asked));
  }
}

function isPlain(view: NodeView, shape: NodeShape): boolean {
  return (
    view.kept.length === 0 && !view.takes?.size && shape.modules.every(({ placed }) => !placed.without?.size)
  );
}

/** Everything of a body up to its resources, as canonical JSON. */
function headOf(view: NodeView, shape: NodeShape, host: DeclarationBody["host"]): string {
  const modules = shape.modules.map(({ compiled }) => {
    const requires = compiled.requires.filter((name) => shape.byName.has(name));
    return `{"name":"${compiled.name}","requires":${JSON.stringify(requires)}}`;
  });
  const times = `{"check":${host.check},"heartbeat":${host.heartbeat},"reconcile":${host.reconcile}}`;
  const start = `{"address":${JSON.stringify(view.address)},"format":1,"host":${times},"mode":"${view.mode}"`;
  return `${start},"modules":[${modules.join(",")}],"node":${JSON.stringify(view.name)},"resources":[`;
}

/** In a plan: what was taken leaves, what is kept until tier 2 stays behind its module, and takers say whom they take. */
function adjust(body: DeclarationBody, view: NodeView): DeclarationBody {
  const kept = new Map<string, DeclaredResource[]>();
  for (const resource of view.kept)
    kept.set(resource.module, [...(kept.get(resource.module) ?? []), resource]);
  const modules = [...body.modules];
  for (const name of kept.keys()) {
    if (!modules.some((module) => module.name === name)) modules.push({ name, requires: [] });
  }
  const resources: DeclaredResource[] = [];
  for (const { name } of modules) {
    const without = view.modules.get(name)?.without;
    resources.push(...body.resources.filter((r) => r.module === name && !without?.has(r.id)));
    resources.push(...(kept.get(name) ?? []).map((r) => ({ ...r, takes: [] })));
  }
  const ids = new Set(resources.map((r) => r.id));
  const adjusted = resources.map((resource) => ({
    ...resource,
    requires: resource.requires.filter((id) => ids.has(id)),
    takes: [...(view.takes?.get(resource.id) ?? resource.takes)].filter((id) => !ids.has(id)).sort(),
  }));
  return { ...body, modules, resources: adjusted };
}
