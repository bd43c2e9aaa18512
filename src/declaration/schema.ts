import { z } from "zod";
import { DeclaredResource } from "../resources/declared.ts";

/** Times a host works by, in milliseconds. */
export const HostTimes = z.strictObject({ check: z.number(), reconcile: z.number(), heartbeat: z.number() });

/**
 * The part of a declaration that its revision digests: everything one node must hold and run, in the order of applying.
 * `modules` are in order of applying; `requires` name modules of this node that must not have failed.
 */
export const DeclarationBody = z.strictObject({
  format: z.literal(1),
  node: z.string(),
  address: z.string(),
  mode: z.enum(["enforce", "observe"]),
  host: HostTimes,
  modules: z.array(z.strictObject({ name: z.string(), requires: z.array(z.string()) })),
  resources: z.array(DeclaredResource),
});
export type DeclarationBody = z.infer<typeof DeclarationBody>;

/**
 * A declaration as a host receives it. `revision` is sha256 (hex) over the canonical JSON of `body`;
 * `sequence` only rises, per node; `signature` is ed25519 (base64) over the lines of `signedText`, "" where unsigned.
 */
export const Declaration = z.strictObject({
  revision: z.string(),
  sequence: z.int().min(1),
  commit: z.string(),
  tier: z.union([z.literal(0), z.literal(1), z.literal(2)]),
  body: DeclarationBody,
  signature: z.string(),
});
export type Declaration = z.infer<typeof Declaration>;

/** What stands in the KV bucket `declarations` under the node's key: the declaration, or a pointer into `objects` when large. */
export const DeclarationEntry = z.union([
  z.strictObject({ sequence: z.int(), declaration: Declaration }),
  z.strictObject({ sequence: z.int(), object: z.string(), size: z.int() }),
]);
export type DeclarationEntry = z.infer<typeof DeclarationEntry>;

/** The text that is signed: node, revision, sequence and commit, one a line. */
export function signedText(d: {
  body: { node: string };
  revision: string;
  sequence: number;
  commit: string;
}): string {
  return `mesh-declaration-1\n${d.body.node}\n${d.revision}\n${d.sequence}\n${d.commit}\n`;
}
