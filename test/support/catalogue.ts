import { createHash } from "node:crypto";
import type { Catalogue, ModuleVersion, SourceFile } from "../../src/catalogue/catalogue.ts";
import { GroupFile } from "../../src/catalogue/schema/group.ts";
import { MeshFile } from "../../src/catalogue/schema/mesh.ts";
import { ModuleFile } from "../../src/catalogue/schema/module.ts";
import { NodeFile } from "../../src/catalogue/schema/node.ts";
import { canonicalJson } from "../../src/declaration/canonical.ts";

type Loose = Record<string, unknown>;

export interface CatalogueParts {
  mesh?: Loose;
  groups?: Record<string, Loose>;
  nodes?: Record<string, Loose>;
  /** By name; `name` itself may be left out. */
  modules?: Record<string, Loose>;
  /** Files beside manifests, by module and path. */
  sources?: Record<string, Record<string, string | Buffer>>;
  commit?: string;
}

/** A valid catalogue from plain objects, through the same schemas as files. Modules that `before` has alike are the same objects. */
export function aCatalogue(parts: CatalogueParts, before?: Catalogue): Catalogue {
  const modules = Object.entries(parts.modules ?? {}).map(([name, manifest]) => {
    const version = aModule(name, manifest, parts.sources?.[name] ?? {});
    const old = before?.modules.get(name);
    return [name, old && old.tree === version.tree ? old : version] as const;
  });
  const nodes = Object.entries(parts.nodes ?? {}).map(
    ([name, file], i) =>
      [name, NodeFile.parse({ address: `10.0.${i >> 8}.${(i & 255) + 1}`, ...file })] as const,
  );
  const groups = Object.entries(parts.groups ?? {}).map(
    ([name, file]) => [name, GroupFile.parse(file)] as const,
  );
  return {
    commit: parts.commit ?? null,
    subject: "",
    mesh: MeshFile.parse(parts.mesh ?? {}),
    groups: new Map(groups),
    nodes: new Map(nodes),
    modules: new Map(modules),
    locate: (_file, path) => ({ line: 1, column: path.length + 1 }),
  };
}

export function aModule(
  name: string,
  manifest: Loose,
  files: Record<string, string | Buffer> = {},
): ModuleVersion {
  const sources = Object.entries(files).map(([path, body]) => [path, aSource(body)] as const);
  const tree = digest(canonicalJson([manifest, sources.map(([path, source]) => [path, source.sha256])]));
  return { name, tree, manifest: ModuleFile.parse({ name, ...manifest }), sources: new Map(sources) };
}

function aSource(body: string | Buffer): SourceFile {
  const bytes = Buffer.from(body as string);
  const oid = createHash("sha1").update(bytes).digest("hex");
  return { oid, sha256: createHash("sha256").update(bytes).digest("hex"), size: bytes.length, bytes };
}

function digest(text: string): string {
  return createHash("sha1").update(text).digest("hex");
}
