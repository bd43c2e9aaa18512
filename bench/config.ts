import { fileURLToPath } from "node:url";

/** 1 is the whole; 0.1 a tenth of nodes, modules and hosts. */
export const scale = Number(process.env.MESH_BENCH_SCALE ?? "1");
/** A folder: the controller writes a CPU profile there when it ends. */
export const profileDir = process.env.MESH_BENCH_PROFILE;
export const distDir = process.env.MESH_DIST ?? fileURLToPath(new URL("../../../dist", import.meta.url));

/** A number of things at this scale, at least one. */
export const scaled = (count: number): number => Math.max(1, Math.round(count * scale));

/** Without what slows every start of node on some machines, and without a mesh's own variables. */
export function cleanEnvironment(): NodeJS.ProcessEnv {
  const { NODE_EXTRA_CA_CERTS: _, NODE_OPTIONS: __, ...rest } = process.env;
  return Object.fromEntries(Object.entries(rest).filter(([name]) => !name.startsWith("MESH_")));
}
