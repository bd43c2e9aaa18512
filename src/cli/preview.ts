import { resolve } from "node:path";
import { isDeepStrictEqual } from "node:util";
import type { Catalogue, CatalogueResult, Problem, Refused } from "../catalogue/catalogue.ts";
import { readForCheck } from "../catalogue/check.ts";
import { type CatalogueReader, openCatalogue } from "../catalogue/open.ts";
import { allProblems, createComposer } from "../composition/compose.ts";
import type { PreviewDocument } from "../composition/preview.ts";
import { meshError } from "../errors.ts";
import { guard } from "../plan/guard.ts";
import { preview, sentAs } from "../plan/preview.ts";
import { confirmLine } from "../plan/trailer.ts";

export class BaseNotValid extends meshError(
  "base-not-valid",
  "stalled",
  (f: { ref: string; problems: number; first: string }) =>
    `${f.ref}: has ${f.problems} problems itself (the first: ${f.first}); compare with a good commit`,
) {}

/**
 * What it would do to bring `target` (a work tree as it is, or REPOSITORY#REF) to a mesh that holds `against`, a revision of
 * the same repository. Offline.
 */
export async function previewOf(target: string, against: string): Promise<PreviewDocument> {
  const reader = await openCatalogue({
    kind: "git",
    path: resolve(target.split("#")[0] ?? "."),
    ref: "HEAD",
  });
  try {
    const base = await reader.resolveRef(against);
    const [before, next] = [await reader.read(base), await readForCheck(target)];
    const old = validBase(before, against);
    if (!next.ok) return await refused(base, next);
    const composer = createComposer();
    const sent = sentAs(old, undefined, composer);
    if (sent.problems.length > 0) throw notValid(sent.problems, against);
    const catalogue = sharing(next.catalogue, old);
    const commit = catalogue.commit ?? (await reader.resolveRef("HEAD").catch(() => base));
    const descends = await descendsFrom(reader, base, commit);
    return preview({
      next: catalogue,
      base: sent,
      composer,
      confirmLine,
      guard: (nodes, diff) => guard({ nodes, diff, settings: catalogue.mesh.guard, descends, commit, base }),
    });
  } finally {
    await reader.close();
  }
}

/** What did not change is the same object in both, so that what it comes to is made once. */
function sharing(next: Catalogue, old: Catalogue): Catalogue {
  const shared = <T>(files: ReadonlyMap<string, T>, before: ReadonlyMap<string, T>) =>
    new Map([...files].map(([name, file]) => [name, same(file, before.get(name))] as const));
  const modules = [...next.modules].map(([name, version]) => {
    const before = old.modules.get(name);
    return [name, before?.tree === version.tree ? before : version] as const;
  });
  return {
    ...next,
    mesh: same(next.mesh, old.mesh),
    groups: shared(next.groups, old.groups),
    nodes: shared(next.nodes, old.nodes),
    modules: new Map(modules),
  };
}

function same<T>(value: T, before: T | undefined): T {
  return before !== undefined && isDeepStrictEqual(value, before) ? before : value;
}

async function descendsFrom(reader: CatalogueReader, base: string, commit: string): Promise<boolean> {
  return base === commit || reader.isAncestor(base, commit);
}

function validBase(result: CatalogueResult, ref: string): Catalogue {
  if (result.ok) return result.catalogue;
  throw notValid(result.problems, ref);
}

function notValid(problems: readonly Problem[], ref: string): BaseNotValid {
  const [first] = problems;
  const text = first ? `${first.file}:${first.line}: ${first.message}` : "unknown";
  return new BaseNotValid({ ref, problems: problems.length, first: text });
}

async function refused(from: string, result: Refused): Promise<PreviewDocument> {
  const problems = await allProblems(result);
  return { from, to: result.commit, tiers: [], guard: [], confirm: null, problems };
}
