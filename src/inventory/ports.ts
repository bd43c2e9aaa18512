import type { PortTable } from "../composition/view.ts";
import type { Db, Tx } from "../io/postgres.ts";

/** Every number in use, also those that a plan under way is about to free. */
export async function readPorts(db: Db): Promise<PortTable> {
  const rows = await db.query<{ node: string; slot: string; port: number }>(
    "SELECT node, slot, port FROM mesh.ports ORDER BY node, slot",
  );
  const table = new Map<string, Map<string, number>>();
  for (const { node, slot, port } of rows) {
    if (!table.has(node)) table.set(node, new Map());
    table.get(node)!.set(slot, port);
  }
  return table;
}

/** Makes `table` the numbers declared from plan `plan` on. Those no longer in it stay taken until that plan, or a later one, is done. */
export async function savePorts(tx: Tx, plan: number, table: PortTable): Promise<void> {
  const flat = [...table].flatMap(([node, slots]) =>
    [...slots].map(([slot, port]) => ({ node, slot, port })),
  );
  const values = [flat.map((p) => p.node), flat.map((p) => p.slot), flat.map((p) => p.port)];
  await tx.query(
    `INSERT INTO mesh.ports AS p (node, slot, port) SELECT * FROM unnest($1::text[], $2::text[], $3::int[])
     ON CONFLICT (node, slot) DO UPDATE SET port = excluded.port, freed_by = NULL
     WHERE p.port <> excluded.port OR p.freed_by IS NOT NULL`,
    values,
  );
  await tx.query(
    `UPDATE mesh.ports p SET freed_by = $4 WHERE NOT EXISTS (
       SELECT 1 FROM unnest($1::text[], $2::text[], $3::int[]) AS i(node, slot, port)
       WHERE i.node = p.node AND i.slot = p.slot)`,
    [...values, plan],
  );
}

/** Plan `plan` is done: what it, or one before it, freed may be given again. */
export async function freePorts(tx: Tx, plan: number): Promise<void> {
  await tx.query("DELETE FROM mesh.ports WHERE freed_by <= $1", [plan]);
}
