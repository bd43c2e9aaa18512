import { hostPart } from "./address.ts";
import { compareText, type Issue, moduleFile } from "./issues.ts";
import type { NodeShape, Placed } from "./shape.ts";
import type { NodeView } from "./view.ts";

interface Holder {
  node: string;
  value: string;
  module: string;
  /** 0: of the new catalogue; 1: at an older version; 2: about to leave. Lower ones come first. */
  yields: number;
}

/** Who holds each seat: the first holding node by name, and every holding node's own. */
export interface SeatTable {
  first: ReadonlyMap<string, string>;
  own(seat: string, node: string): string | undefined;
  issues: readonly Issue[];
}

/** @param nodes in order of name, with their ports */
export function seatTable(
  nodes: Iterable<{ view: NodeView; shape: NodeShape; ports: ReadonlyMap<string, number> }>,
  mixed: boolean,
): SeatTable {
  const holders = new Map<string, Holder[]>();
  for (const { view, shape, ports } of nodes) {
    for (const item of shape.holders) {
      for (const [seat, port] of item.compiled.seats) {
        const number = portOf(item, port, ports);
        if (number === undefined) continue;
        const value = `${hostPart(item.placed.address ?? view.address)}:${number}`;
        const list = holders.get(seat) ?? [];
        list.push({ node: view.name, value, module: item.compiled.name, yields: yieldsOf(item) });
        holders.set(seat, list);
      }
    }
  }
  return settle(holders, mixed);
}

function yieldsOf({ placed }: Placed): number {
  if (placed.leaving) return 2;
  return placed.lastSeats ? 1 : 0;
}

export function portOf(item: Placed, port: string, ports: ReadonlyMap<string, number>): number | undefined {
  const given = item.compiled.fixedPorts.find(([name]) => name === port)?.[1];
  return given ?? ports.get(`${item.compiled.name}/${port}`);
}

function settle(holders: ReadonlyMap<string, Holder[]>, mixed: boolean): SeatTable {
  const first = new Map<string, string>();
  const own = new Map<string, Map<string, string>>();
  const issues: Issue[] = [];
  for (const [seat, all] of [...holders].sort((a, b) => compareText(a[0], b[0]))) {
    const least = Math.min(...all.map((holder) => holder.yields));
    const holding = all.filter((holder) => holder.yields === least);
    holding.sort((a, b) => compareText(a.node, b.node));
    const modules = [...new Set(holding.map((holder) => holder.module))].sort(compareText);
    if (modules.length > 1 && !mixed) {
      issues.push({
        file: moduleFile(modules[1] as string),
        path: ["seats", seat],
        message: `seat ${seat} is held by two modules: ${modules.join(" and ")}; a seat has exactly one`,
      });
    }
    first.set(seat, (holding[0] as Holder).value);
    own.set(seat, new Map(holding.map((holder) => [holder.node, holder.value])));
  }
  return { first, own: (seat, node) => own.get(seat)?.get(node), issues };
}
