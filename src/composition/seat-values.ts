import { OFFLINE_SEATS } from "./address.ts";
import { type Issue, moduleFile } from "./issues.ts";
import type { CompiledModule } from "./module.ts";
import { knownNames } from "./nearest.ts";
import type { SeatTable } from "./seats.ts";
import type { NodeShape } from "./shape.ts";
import type { CompositionFacts, MeshView, NodeView } from "./view.ts";

/** What a node's modules are told of each seat they use; a seat that nobody holds anywhere is a problem. */
export function seatsFor(
  part: { view: NodeView; shape: NodeShape },
  table: SeatTable,
  facts: CompositionFacts,
  issues: Issue[],
): ReadonlyMap<string, string> {
  if (part.shape.seatsUsed.length === 0) return NO_SEATS;
  const seats = new Map<string, string>();
  for (const seat of part.shape.seatsUsed) {
    const held = heldSeat(seat, part.view.name, table, facts);
    if (held !== undefined) {
      seats.set(seat, held);
      continue;
    }
    const users = part.shape.modules.filter(({ compiled }) =>
      compiled.seatUses.some((use) => use.seat === seat),
    );
    // A module at its old version keeps what it was told; a new one is told what will be true.
    if (users.every(({ placed }) => placed.lastSeats && Object.hasOwn(placed.lastSeats, seat))) continue;
    const later = facts.lastSeat?.(part.view.name, seat) ?? facts.finalSeats?.get(seat);
    if (later !== undefined) seats.set(seat, later);
    else issues.push(...users.map(({ compiled }) => unheldSeat(compiled, seat, [...table.first.keys()])));
  }
  return seats;
}

const NO_SEATS: ReadonlyMap<string, string> = new Map();

export function heldSeat(
  seat: string,
  node: string,
  table: SeatTable,
  facts: CompositionFacts,
): string | undefined {
  return table.own(seat, node) ?? table.first.get(seat) ?? contextSeat(seat, facts);
}

function contextSeat(seat: string, facts: CompositionFacts): string | undefined {
  if (Object.hasOwn(facts.seats, seat)) return facts.seats[seat];
  return Object.hasOwn(OFFLINE_SEATS, seat) ? OFFLINE_SEATS[seat] : undefined;
}

function unheldSeat(compiled: CompiledModule, seat: string, held: string[]): Issue {
  const use = compiled.seatUses.find((one) => one.seat === seat) as CompiledModule["seatUses"][number];
  const known = knownNames(seat, [...held, ...Object.keys(OFFLINE_SEATS)]);
  const message = `${use.label}: \${seat:${seat}}: no node has a module that holds this seat; ${known}`;
  return { file: moduleFile(compiled.name), path: use.path, message };
}

export function unknownSeats(compiled: CompiledModule, seats: ReadonlySet<string>): Issue[] {
  if (compiled.seatUses.length === 0) return [];
  const wrong = compiled.seatUses.filter(({ seat }) => !seats.has(seat));
  return wrong.map(({ seat, path, label }) => ({
    file: moduleFile(compiled.name),
    path,
    message: `${label}: \${seat:${seat}}: no module holds this seat; ${knownNames(seat, seats.keys())}`,
  }));
}

export function isPlaced(view: MeshView, module: string): boolean {
  for (const node of view.nodes.values()) if (node.modules.has(module)) return true;
  return false;
}
