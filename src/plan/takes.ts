import type { Composer } from "../composition/composer.ts";
import type { CompiledModule } from "../composition/module.ts";
import type { CompiledResource } from "../composition/resource.ts";
import type { PlacedModule } from "../composition/view.ts";
import type { DeclaredResource } from "../resources/declared.ts";

/** What new resources of a node claim, by claim: the ids of the claiming resources. */
class Claims {
  readonly #byKey = new Map<string, string[]>();
  /** Claimed paths; true where a file is claimed, below which nothing else can be. */
  readonly #paths = new Map<string, boolean>();

  add(key: string, id: string): void {
    this.#byKey.set(key, [...(this.#byKey.get(key) ?? []), id]);
  }
  addPath(path: string, id: string, isFile: boolean): void {
    this.add(`path:${path}`, id);
    this.#paths.set(path, isFile);
  }
  of(key: string): readonly string[] {
    return this.#byKey.get(key) ?? [];
  }
  /** Who claims a path, lies below it where it is a file, or is a file above it. */
  ofPath(path: string, isFile: boolean): readonly string[] {
    const ids = [...this.of(`path:${path}`)];
    for (const [claimed, claimedFile] of this.#paths) {
      const below = isFile && claimed.startsWith(`${path}/`);
      const above = claimedFile && path.startsWith(`${claimed}/`);
      if (below || above) ids.push(...this.of(`path:${claimed}`));
    }
    return ids;
  }
}

/** The resources of a module that hold one of its ports: those whose text names it, else its services. */
function holdersOf(compiled: CompiledModule, port: string): readonly CompiledResource[] {
  const naming = compiled.resources.filter((r) => r.type === "process" && r.ports.includes(port));
  return naming.length > 0 ? naming : compiled.resources.filter((r) => r.service);
}

/** `port:N` and `seat:NAME` for each resource of a module that holds one. Auto ports never meet, so only fixed ones count. */
function* heldBy(compiled: CompiledModule): Generator<{ key: string; id: string }> {
  for (const [name, port] of compiled.fixedPorts) {
    for (const { id } of holdersOf(compiled, name)) yield { key: `port:${port}`, id };
  }
  for (const [seat, port] of compiled.seats) {
    for (const { id } of holdersOf(compiled, port)) yield { key: `seat:${seat}`, id };
  }
}

function claimsOf(modules: readonly CompiledModule[]): Claims {
  const claims = new Claims();
  for (const compiled of modules) {
    for (const resource of compiled.resources) {
      for (const claim of resource.claims) {
        if (claim.space === "path") claims.addPath(claim.name, resource.id, resource.type === "file");
        else claims.add(`${claim.space}:${claim.name}`, resource.id);
      }
    }
    for (const { key, id } of heldBy(compiled)) claims.add(key, id);
  }
  return claims;
}

/**
 * Who takes what on one node in one tier. A new resource that claims a path, account, process name, port or seat which a
 * last-sent resource holds under another id takes it; a seat only from one that leaves with this plan (`staying` stays).
 * @param fresh the modules that this tier brings at another version than was sent
 * @param old the module versions last sent, where they are known, for the ports and seats of their resources
 * @returns taker -> taken ids, both full
 */
export function takesOf(at: {
  composer: Composer;
  fresh: readonly PlacedModule[];
  old: readonly PlacedModule[];
  last: readonly DeclaredResource[];
  /** Full ids that fresh modules declare: they are changed in place, never taken. */
  declared: ReadonlySet<string>;
  staying: (id: string) => boolean;
}): Map<string, string[]> {
  const takes = new Map<string, string[]>();
  if (at.fresh.length === 0 || at.last.length === 0) return takes;
  const claims = claimsOf(at.fresh.map(({ version }) => at.composer.compiled(version)));
  const held = new Map<string, string[]>();
  for (const { version } of at.old) {
    for (const { key, id } of heldBy(at.composer.compiled(version)))
      held.set(id, [...(held.get(id) ?? []), key]);
  }
  for (const resource of at.last) {
    if (at.declared.has(resource.id)) continue;
    const takers = new Set<string>();
    for (const taker of ownTakers(resource, claims)) takers.add(taker);
    for (const key of held.get(resource.id) ?? []) {
      if (key.startsWith("seat:") && at.staying(resource.id)) continue;
      for (const taker of claims.of(key)) takers.add(taker);
    }
    for (const taker of takers) takes.set(taker, [...(takes.get(taker) ?? []), resource.id].sort());
  }
  return takes;
}

function ownTakers(resource: DeclaredResource, claims: Claims): readonly string[] {
  if ("path" in resource) return claims.ofPath(resource.path, resource.type === "file");
  return claims.of(`${resource.type}:${resource.name}`);
}
