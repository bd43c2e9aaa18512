import type { NodeShape } from "./shape.ts";

const NONE: ReadonlyMap<string, number> = new Map();

export interface PortRange {
  from: number;
  to: number;
}

export interface Allocation {
  ports: ReadonlyMap<string, number>;
  /** The pairs for which the range had no number left. */
  missing: readonly string[];
}

/**
 * The auto ports of one node: the number that is known, else the lowest free one of the range. Fixed ports, known numbers
 * (also of pairs that are gone: they stay taken while they are listed) and those of the other `shapes` are never used.
 * Several shapes of one node (the tiers of a plan) get one table, so that a number never changes between tiers.
 * @returns numbers by `module/port`
 */
export function allocatePorts(
  shapes: readonly NodeShape[],
  range: PortRange,
  known: ReadonlyMap<string, number> | undefined,
): Allocation {
  if (shapes.every((shape) => shape.autoPorts.length === 0)) return { ports: NONE, missing: [] };
  const pairs = [...new Set(shapes.flatMap((shape) => shape.autoPorts))].sort();
  const fixed = new Set(shapes.flatMap((shape) => [...shape.fixedPorts]));
  const used = new Set([...fixed, ...(known?.values() ?? [])]);
  const ports = new Map<string, number>();
  const missing: string[] = [];
  let next = range.from;
  for (const pair of pairs) {
    const number = known?.get(pair);
    if (number !== undefined && !fixed.has(number)) {
      ports.set(pair, number);
      continue;
    }
    while (next <= range.to && used.has(next)) next++;
    if (next > range.to) missing.push(pair);
    else ports.set(pair, next++);
  }
  return { ports, missing };
}
