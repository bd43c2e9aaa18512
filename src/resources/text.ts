import { z } from "zod";

/**
 * Text of a declaration after composition. A plain string is final, to the byte, and is never looked at again.
 * Parts that only the host can fill are kept apart as references, so that no value is ever filled twice:
 * `{ path }` is a declared absolute path (`${path:ID}`, `${state}`), which the host maps under its root.
 */
export const TextRef = z.strictObject({ path: z.string() });
export const Text = z.union([z.string(), z.array(z.union([z.string(), TextRef]))]);
export type TextRef = z.infer<typeof TextRef>;
export type Text = z.infer<typeof Text>;

/** Renders a text with the host's mapping of declared paths to real ones. */
export function renderText(text: Text, realPath: (declared: string) => string): string {
  if (typeof text === "string") return text;
  return text.map((part) => (typeof part === "string" ? part : realPath(part.path))).join("");
}
