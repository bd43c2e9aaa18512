import { resolve } from "node:path";
import type { Catalogue, CatalogueResult } from "../catalogue/catalogue.ts";
import { readForCheck } from "../catalogue/check.ts";
import { type CatalogueReader, openCatalogue } from "../catalogue/open.ts";
import { createComposer } from "../composition/compose.ts";
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
    if (!next.ok) return refused(base, next);
    const composer = createComposer();
    const sent = sentAs(old, undefined, composer);
    if (sent.problems.length > 0)
      validBase({ ok: false, commit: base, subject: "", problems: sent.problems }, against);
    const { catalogue } = next;
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

async function descendsFrom(reader: CatalogueReader, base: string, commit: string): Promise<boolean> {
  return base === commit || reader.isAncestor(base, commit);
}

function validBase(result: CatalogueResult, ref: string): Catalogue {
  if (result.ok) return result.catalogue;
  const [first] = result.problems;
  const text = first ? `${first.file}:${first.line}: ${first.message}` : "unknown";
  throw new BaseNotValid({ ref, problems: result.problems.length, first: text });
}

function refused(from: string, result: Extract<CatalogueResult, { ok: false }>): PreviewDocument {
  return { from, to: result.commit, tiers: [], guard: [], confirm: null, problems: result.problems };
}
