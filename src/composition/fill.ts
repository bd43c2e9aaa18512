import { escapeJson, type Filling, type StoredObject } from "./chunks.ts";
import type { CompiledModule } from "./module.ts";
import { type FixedResource, fillResource } from "./resource.ts";

/** One module filled for one node (or for many with the same values), and its bodies in the store. */
export interface FilledModule {
  /** The canonical JSON of its resources, joined by commas; "" when it has none. */
  text: string;
  objects: ReadonlyMap<string, StoredObject>;
}

/** One module's resources under given values, each filled once and when asked for. */
class Resources {
  readonly #digests = new Map<string, string>();
  readonly #texts = new Map<string, string>();
  readonly #compiled: CompiledModule;
  readonly #filling: Filling;

  constructor(
    compiled: CompiledModule,
    values: readonly string[],
    foreign: (id: string) => string,
    store: Filling["store"],
  ) {
    this.#compiled = compiled;
    const digestOf = (id: string) => (compiled.byId.has(id) ? this.digest(id) : foreign(id));
    this.#filling = { values, escaped: values.map(escapeJson), digestOf, store };
  }

  digest(id: string): string {
    const known = this.#fixed(id)?.digest ?? this.#digests.get(id);
    if (known !== undefined) return known;
    this.#fill(id);
    return this.#digests.get(id) as string;
  }

  text(id: string): string {
    const known = this.#fixed(id)?.text ?? this.#texts.get(id);
    if (known !== undefined) return known;
    this.#fill(id);
    return this.#texts.get(id) as string;
  }

  #fixed(id: string): FixedResource | undefined {
    return this.#compiled.fixed.get(id);
  }

  #fill(id: string): void {
    const resource = this.#compiled.byId.get(id);
    if (!resource) return;
    // Asked for while it is filled only in a cycle of restartOn, which is a problem of its own.
    this.#digests.set(id, "");
    this.#texts.set(
      id,
      fillResource(resource, this.#filling, (digest) => this.#digests.set(id, digest)),
    );
  }
}

/** @param foreign the digest of another module's resource on the same node, by full id */
export function fillModule(
  compiled: CompiledModule,
  values: readonly string[],
  foreign: (id: string) => string,
): FilledModule {
  let stored: Map<string, StoredObject> | null = null;
  const resources = new Resources(compiled, values, foreign, (sha, object) => {
    stored ??= new Map(compiled.objects);
    stored.set(sha, object);
  });
  let text = "";
  for (const { id } of compiled.resources)
    text += text === "" ? resources.text(id) : `,${resources.text(id)}`;
  return { text, objects: stored ?? compiled.objects };
}

/** The digest of one resource of a module under given values. */
export function digestIn(
  compiled: CompiledModule,
  id: string,
  values: readonly string[],
  foreign: (id: string) => string,
): string {
  return new Resources(compiled, values, foreign, () => undefined).digest(id);
}
