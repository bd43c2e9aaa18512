import { closeSync, fstatSync, openSync, readSync } from "node:fs";
import { z } from "zod";
import { meshError } from "../errors.ts";
import type { HostLoop } from "./loop.ts";
import type { Supervisor } from "./supervision/types.ts";

export class ResourceUnknown extends meshError(
  "resource-unknown",
  "stalled",
  (f: { resource: string; what: "process" | "resource"; known: string[] }) =>
    `${f.resource}: no such ${f.what} on this node; it has ${f.known.join(", ") || "none"}`,
) {}

const LogsBody = z.object({
  resource: z.string(),
  lines: z.int().min(0).max(10_000).default(100),
  after: z.number().nullish(),
});
const ResourceBody = z.object({ resource: z.string() });
const DiffBody = z.object({ resource: z.string().nullish() });

export class BodyInvalid extends meshError(
  "body-invalid",
  "stalled",
  (f: { path: string; found: string }) => `the call's body: ${f.path || "(whole)"}: ${f.found}`,
) {}

function read<T>(schema: z.ZodType<T>, body: unknown): T {
  const parsed = schema.safeParse(body ?? {});
  if (parsed.success) return parsed.data;
  const issue = parsed.error.issues[0];
  throw new BodyInvalid({ path: issue?.path.join(".") ?? "", found: issue?.message ?? "is not understood" });
}

/** A retry of a call that was answered gets the same answer, without a second effect. */
function onceEach<A>(remembered = 256): (id: string, work: () => Promise<A>) => Promise<A> {
  const calls = new Map<string, Promise<A>>();
  return (id, work) => {
    const before = calls.get(id);
    if (before) return before;
    const answer = work();
    calls.set(id, answer);
    const oldest = calls.keys().next();
    if (calls.size > remembered && !oldest.done) calls.delete(oldest.value);
    return answer;
  };
}

const MOST_BYTES = 512 * 1024;

/** Text without what a terminal or JSON would stumble over. */
const clean = (line: string) => line.replace(/[\u0000-\u0008\u000b-\u001f\u007f]/g, "\ufffd");

/**
 * The last lines of a log, or those after a position (bytes). A file that was rotated is read from its begin.
 * The answer's `position` is where the next call goes on.
 */
export function readLog(
  file: string,
  lines: number,
  after: number | null,
): { lines: string[]; position: number } {
  let fd: number;
  try {
    fd = openSync(file, "r");
  } catch {
    return { lines: [], position: 0 };
  }
  try {
    const { size } = fstatSync(fd);
    const follow = after !== null;
    const from =
      follow && after <= size ? Math.max(after, size - MOST_BYTES) : Math.max(0, size - MOST_BYTES);
    const buffer = Buffer.alloc(size - from);
    const read = readSync(fd, buffer, 0, buffer.length, from);
    const bytes = buffer.subarray(0, read);
    // A line that is still being written is left for the next call, unless nobody asks again.
    const end = follow ? bytes.lastIndexOf(10) + 1 : bytes.length;
    const text = bytes.subarray(0, end).toString("utf8");
    const all = text === "" ? [] : text.replace(/\n$/, "").split("\n").map(clean);
    const kept = follow ? all : lines === 0 ? [] : all.slice(-lines);
    return { lines: kept, position: from + (follow ? end : bytes.lastIndexOf(10) + 1) };
  } finally {
    closeSync(fd);
  }
}

/** What a host answers on its own verbs; bodies and answers are JSON. */
export function nodeVerbs(node: string, loop: HostLoop, supervisor: Supervisor) {
  const known = (resource: string) => {
    if (supervisor.status(resource)) return;
    throw new ResourceUnknown({ resource, what: "process", known: supervisor.list().map(({ id }) => id) });
  };
  const once = onceEach<{ node: string; resource: string }>();
  return {
    logs: async (body: unknown) => {
      const { resource, lines, after } = read(LogsBody, body);
      known(resource);
      return readLog(supervisor.logFile(resource), lines, after ?? null);
    },
    restart: async (body: unknown, call: { id: string }) => {
      const { resource } = read(ResourceBody, body);
      known(resource);
      return once(call.id, async () => {
        await loop.restart(resource);
        return { node, resource };
      });
    },
    diff: async (body: unknown) => {
      const { resource } = read(DiffBody, body);
      const differences = await loop.differences(resource ?? null);
      const ids = loop.declared()?.body.resources.map(({ id }) => id) ?? [];
      // What is no longer declared may still differ: it is about to go.
      if (resource && differences.length === 0 && !ids.includes(resource))
        throw new ResourceUnknown({ resource, what: "resource", known: ids });
      return { node, differences };
    },
  };
}
