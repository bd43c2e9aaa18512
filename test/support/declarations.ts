import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { canonicalJson, revisionOf } from "../../src/declaration/canonical.ts";
import type { Outgoing } from "../../src/declaration/publish.ts";
import type { DeclarationBody } from "../../src/declaration/schema.ts";
import { createSigner, generateSigningKey, type Signer } from "../../src/declaration/sign.ts";

export function aBody(node: string, over: Partial<DeclarationBody> = {}): DeclarationBody {
  return {
    format: 1,
    node,
    address: "127.0.0.11",
    mode: "enforce",
    host: { check: 5_000, reconcile: 300_000, heartbeat: 30_000 },
    modules: [],
    resources: [],
    ...over,
  };
}

/** A declaration to publish. `mark` makes another revision; `padding` makes it that many bytes larger. */
export function anOutgoing(node: string, sequence: number, mark = "a", padding = 0): Outgoing {
  const modules = [mark, "x".repeat(padding)].filter(Boolean).map((name) => ({ name, requires: [] }));
  const body = aBody(node, { modules });
  return { node, sequence, revision: revisionOf(body), commit: "c0ffee", tier: 2, body: canonicalJson(body) };
}

export function aSigner(): Signer {
  const dir = mkdtempSync(join(tmpdir(), "mesh-key-"));
  try {
    writeFileSync(join(dir, "key.pem"), generateSigningKey().privateKey);
    return createSigner(join(dir, "key.pem"));
  } finally {
    rmSync(dir, { recursive: true });
  }
}
