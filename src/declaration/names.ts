/** Names on NATS (DESIGN: link). A `.` of a node name becomes `_`, which names cannot hold, so keys never collide. */
export const STREAMS = { control: "CONTROL", events: "EVENTS", builds: "BUILDS" } as const;
export const BUCKETS = { declarations: "declarations", objects: "objects" } as const;

export function nodeKey(node: string): string {
  return node.replaceAll(".", "_");
}

/** The streams that NATS keeps under the two buckets. */
export const DECLARATIONS_STREAM = `KV_${BUCKETS.declarations}`;
export const OBJECTS_STREAM = `OBJ_${BUCKETS.objects}`;
export const subjects = {
  /** Where a node's key of the bucket `declarations` is stored. */
  declaration: (node: string) => `$KV.${BUCKETS.declarations}.${nodeKey(node)}`,
  control: (kind: string) => `mesh.control.${kind}`,
  report: (node: string) => `mesh.events.${nodeKey(node)}.report`,
  heartbeat: (node: string) => `mesh.heartbeat.${nodeKey(node)}`,
  build: (key: string) => `mesh.builds.${key}`,
  seatVerb: (seat: string, verb: string) => `mesh.seat.${seat}.${verb}`,
  seatVerbAll: (seat: string, verb: string) => `mesh.seat.${seat}.${verb}.all`,
  nodeVerb: (node: string, verb: string) => `mesh.node.${nodeKey(node)}.${verb}`,
} as const;

/** The sequence at the begin of an entry, as the controller writes it, without reading all of it. Null: written otherwise. */
export function sequenceIn(entry: Uint8Array): number | null {
  const start = Buffer.from(entry.buffer, entry.byteOffset, Math.min(entry.length, 64)).toString("latin1");
  const digits = /^\{"sequence":(\d{1,15}),/.exec(start)?.[1];
  return digits === undefined ? null : Number(digits);
}
