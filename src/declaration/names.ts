/** Names on NATS (DESIGN: link). A `.` of a node name becomes `_`, which names cannot hold, so keys never collide. */
export const STREAMS = { control: "CONTROL", events: "EVENTS", builds: "BUILDS" } as const;
export const BUCKETS = { declarations: "declarations", objects: "objects" } as const;

export function nodeKey(node: string): string {
  return node.replaceAll(".", "_");
}
export function nodeOfKey(key: string): string {
  return key.replaceAll("_", ".");
}
export const subjects = {
  control: (kind: string) => `mesh.control.${kind}`,
  report: (node: string) => `mesh.events.${nodeKey(node)}.report`,
  heartbeat: (node: string) => `mesh.heartbeat.${nodeKey(node)}`,
  build: (key: string) => `mesh.builds.${key}`,
  seatVerb: (seat: string, verb: string) => `mesh.seat.${seat}.${verb}`,
  seatVerbAll: (seat: string, verb: string) => `mesh.seat.${seat}.${verb}.all`,
  nodeVerb: (node: string, verb: string) => `mesh.node.${nodeKey(node)}.${verb}`,
} as const;
