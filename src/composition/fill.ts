import { escapeJson, type Filling, fillChunks, type StoredObject } from "./chunks.ts";
import { type CompiledModule, digestOf } from "./module.ts";

/** One module filled for one node (or for many with the same values): the canonical JSON of its resources, and its bodies in the store. */
export interface FilledModule {
  /** The resources, joined by commas; "" when the module has none. */
  text: string;
  objects: ReadonlyMap<string, StoredObject>;
}

/** Digests of one module's resources under given values, each worked out once and when asked for. */
class Digests {
  readonly #known = new Map<string, string>();
  readonly #compiled: CompiledModule;
  readonly #foreign: (id: string) => string;
  readonly filling: Filling;

  constructor(
    compiled: CompiledModule,
    values: readonly string[],
    foreign: (id: string) => string,
    store: Filling["store"],
  ) {
    this.#compiled = compiled;
    this.#foreign = foreign;
    this.filling = {
      values,
      escaped: values.map(escapeJson),
      digestOf: (id) => this.of(id),
      store,
    };
  }

  of(id: string): string {
    const known = this.#compiled.fixed.get(id)?.digest ?? this.#known.get(id);
    if (known !== undefined) return known;
    const resource = this.#compiled.byId.get(id);
    if (!resource) return this.#foreign(id);
    // Meets itself only in a cycle of restartOn, which is a problem of its own.
    this.#known.set(id, "");
    const digest = digestOf(resource, this.filling);
    this.#known.set(id, digest);
    return digest;
  }
}

/** @param foreign the digest of another module's resource on the same node, by full id */
export function fillModule(
  compiled: CompiledModule,
  values: readonly string[],
  foreign: (id: string) => string,
): FilledModule {
  let stored: Map<string, StoredObject> | null = null;
  const digests = new Digests(compiled, values, foreign, (sha, object) => {
    stored ??= new Map(compiled.objects);
    stored.set(sha, object);
  });
  let text = "";
  for (const resource of compiled.resources) {
    if (text !== "") text += ",";
    text += compiled.fixed.get(resource.id)?.text ?? fillChunks(resource.chunks, digests.filling);
  }
  return { text, objects: stored ?? compiled.objects };
}

/** The digest of one resource of a module under given values. */
export function digestIn(
  compiled: CompiledModule,
  id: string,
  values: readonly string[],
  foreign: (id: string) => string,
): string {
  return new Digests(compiled, values, foreign, () => undefined).of(id);
}
