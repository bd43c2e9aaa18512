import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { ProcessSpec, ProcessStatus, Supervisor } from "./supervision/types.ts";

interface Recorded {
  id: string;
  wanted: { digest: string } | null;
  done: string | null;
  removing: boolean;
}

function readRecords(dir: string): Map<string, Recorded> {
  const records = new Map<string, Recorded>();
  let ids: string[] = [];
  try {
    ids = readdirSync(join(dir, "processes"));
  } catch {
    return records;
  }
  for (const id of ids) {
    try {
      records.set(
        id,
        JSON.parse(readFileSync(join(dir, "processes", id, "record.json"), "utf8")) as Recorded,
      );
    } catch {
      // Unreadable: a real run sets it aside and finds what lives; looking changes nothing.
    }
  }
  return records;
}

/** What the record on disk says of the processes, for looking without changing anything. */
export function readOnlySupervisor(dir: string): Supervisor {
  const records = readRecords(dir);
  const refuse = () => Promise.reject(new Error("looking changes nothing"));
  const status = (record: Recorded): ProcessStatus => ({
    id: record.id,
    state: "unknown",
    pid: null,
    restarts: 0,
    since: null,
    exit: null,
    runningDigest: null,
    wantedDigest: record.wanted?.digest ?? "",
    proof: "proving",
    error: null,
    last: [],
  });
  return {
    resume: () => Promise.resolve(),
    ensure: refuse,
    differs(spec: ProcessSpec) {
      const record = records.get(spec.id);
      if (!record || record.removing) return "absent";
      if (record.wanted?.digest !== spec.digest) return "differs";
      return spec.run === "once" && spec.schedule === null && record.done !== spec.digest
        ? "differs"
        : "same";
    },
    remove: refuse,
    restart: refuse,
    reload: refuse,
    status: (id) => {
      const record = records.get(id);
      return record ? status(record) : null;
    },
    list: () => [...records.values()].map(status),
    logFile: () => "",
    limits: () => [],
    onChange: () => undefined,
    close: () => Promise.resolve(),
  };
}
