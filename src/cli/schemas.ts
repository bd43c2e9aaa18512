import type { z } from "zod";

const KINDS = {
  module: async () => (await import("../catalogue/schema/module.ts")).ModuleFile,
  node: async () => (await import("../catalogue/schema/node.ts")).NodeFile,
  group: async () => (await import("../catalogue/schema/group.ts")).GroupFile,
  mesh: async () => (await import("../catalogue/schema/mesh.ts")).MeshFile,
  declaration: async () => (await import("../declaration/schema.ts")).Declaration,
  report: async () => (await import("../report/schema.ts")).Report,
} satisfies Record<string, () => Promise<z.ZodType>>;

export type SchemaKind = keyof typeof KINDS;
export const SCHEMA_KINDS = Object.keys(KINDS) as SchemaKind[];

/** The JSON Schema (draft 2020-12) of what a person or a host writes: before durations become numbers. */
export async function schemaOf(kind: SchemaKind): Promise<object> {
  const { toJSONSchema } = await import("zod");
  const schema = toJSONSchema(await KINDS[kind](), { io: "input", unrepresentable: "any" });
  return { title: kind, ...schema };
}
