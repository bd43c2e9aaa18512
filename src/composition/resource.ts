import type { Claim } from "../resources/base.ts";
import { DigestOf, StoredBody } from "../resources/draft.ts";
import { type DraftResource, RANK } from "../resources/kind.ts";
import { type Chunk, type Filling, fillChunks, type ResourceChunks, sha256, toChunks } from "./chunks.ts";
import type { Gathering } from "./scope.ts";

/** One resource of a module, ready to be filled. `ports` are the names of the module's ports that its texts use. */
export interface CompiledResource {
  /** Full id. */
  id: string;
  type: string;
  chunks: ResourceChunks;
  restartOn: readonly string[];
  claims: readonly Claim[];
  ports: readonly string[];
  service: boolean;
  /** Name of its module. */
  module: string;
  /** Its claims as keys, and for each claimed path the keys of the folders above it. */
  keys: readonly string[];
  above: readonly string[];
}

/** What a resource is on every node alike: no value of a node, a setting or another module is in it. */
export interface FixedResource {
  text: string;
  digest: string;
}

export type Drafted = DraftResource & { type: string; index: number; ports: readonly string[] };

export function compileResource(draft: Drafted, module: string, gathering: Gathering): CompiledResource {
  const id = `${module}.${draft.id}`;
  const body = draft.fields.body;
  if (body instanceof StoredBody) {
    gathering.objects.set(body.sha256, { oid: body.oid, bytes: body.bytes, size: body.size });
  }
  const requires = [...new Set(draft.requires)].map((required) => `${module}.${required}`);
  const common = { type: draft.type, id, module, requires, takes: [], digest: new DigestOf(id) };
  const identity = new Set(["type", ...(draft.identity ?? Object.keys(draft.fields))]);
  return {
    id,
    type: draft.type,
    chunks: toChunks(draft.fields, common, identity),
    restartOn: draft.restartOn ?? [],
    claims: draft.claims,
    ports: draft.ports,
    service: draft.rank === RANK.service,
    module,
    keys: draft.claims.map(({ space, name }) => `${space}:${name}`),
    above: draft.claims.flatMap(({ space, name }) => (space === "path" ? foldersAbove(name) : [])),
  };
}

function foldersAbove(path: string): string[] {
  const above: string[] = [];
  for (let end = path.lastIndexOf("/"); end > 0; end = path.lastIndexOf("/", end - 1)) {
    above.push(`path:${path.slice(0, end)}`);
  }
  return above;
}

/** Fills once what needs no value. A resource that depends on a later one in the order is left to be filled each time. */
export function fixedOf(resources: readonly CompiledResource[]): Map<string, FixedResource> {
  const fixed = new Map<string, FixedResource>();
  for (const resource of resources) {
    const known = (id: string) => id === resource.id || fixed.has(id);
    const needsNothing = (chunk: Chunk) =>
      typeof chunk === "string" ||
      (typeof chunk === "object" && "digestOf" in chunk && known(chunk.digestOf));
    if (!resource.chunks.chunks.every(needsNothing) || !resource.restartOn.every((id) => fixed.has(id)))
      continue;
    const digests = new Map([...fixed].map(([id, { digest }]) => [id, digest]));
    const digestOf = (id: string) => digests.get(id) ?? "";
    const text = fillResource(resource, { ...NO_VALUES, digestOf }, (digest) =>
      digests.set(resource.id, digest),
    );
    fixed.set(resource.id, { text, digest: digestOf(resource.id) });
  }
  return fixed;
}

const NO_VALUES = { values: [], escaped: [], store: () => undefined };

/** A resource's JSON. Its digest, of its own fields and the digests of what it restarts on, is told before it is in the text. */
export function fillResource(
  resource: CompiledResource,
  filling: Filling,
  digest: (digest: string) => void,
): string {
  return fillChunks(resource.chunks, filling, (identity) => {
    let text = identity;
    for (const target of resource.restartOn) text += `\n${filling.digestOf(target)}`;
    digest(sha256(text));
  });
}
