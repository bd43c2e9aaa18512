import { nodeKey } from "../declaration/names.ts";
import { Heartbeat, Report } from "./schema.ts";

/**
 * Reads a report as it came on `mesh.events.<node>.report`. A string says why it cannot be used: no report, of another
 * shape, or one that speaks for another node than its subject allows.
 */
export function readReport(message: { subject: string; data: Uint8Array }): Report | string {
  return readOf(Report, message, 2);
}

/** The same for `mesh.heartbeat.<node>`. */
export function readHeartbeat(message: { subject: string; data: Uint8Array }): Heartbeat | string {
  return readOf(Heartbeat, message, 2);
}

function readOf<T extends { node: string }>(
  schema: {
    safeParse(value: unknown): { success: true; data: T } | { success: false; error: { message: string } };
  },
  { subject, data }: { subject: string; data: Uint8Array },
  place: number,
): T | string {
  let value: unknown;
  try {
    value = JSON.parse(Buffer.from(data).toString("utf8"));
  } catch {
    return `${subject}: is no JSON`;
  }
  const read = schema.safeParse(value);
  if (!read.success) return `${subject}: has another shape than this release knows`;
  if (nodeKey(read.data.node) !== subject.split(".")[place])
    return `${subject}: speaks for ${read.data.node}`;
  return read.data;
}
