import { directoryKind } from "./directory/compile.ts";
import { fileKind } from "./file/compile.ts";
import { groupKind } from "./group/compile.ts";
import { processKind } from "./process/compile.ts";
import { userKind } from "./user/compile.ts";

/** Every kind of resource there is. A new kind is its folder and a line here; the schemas of manifest and declaration follow. */
export const KINDS = [groupKind, userKind, directoryKind, fileKind, processKind] as const;

type Column<T extends readonly unknown[], Key extends string> = {
  [I in keyof T]: T[I] extends { readonly [K in Key]: infer Schema } ? Schema : never;
};

/** The kinds' schemas of one side, as the tuple that a zod union takes. */
export function schemasOf<Key extends "manifest" | "declared">(key: Key): Column<typeof KINDS, Key> {
  return KINDS.map((kind) => kind[key]) as unknown as Column<typeof KINDS, Key>;
}
