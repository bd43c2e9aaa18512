import { createHash } from "node:crypto";
import { existsSync, type FSWatcher, mkdirSync, realpathSync, watch } from "node:fs";
import { userInfo } from "node:os";
import { basename, join } from "node:path";
import { messageOf } from "../../errors.ts";
import { type Clock, iso, systemClock } from "../../io/clock.ts";
import type { HostEvent } from "../../report/schema.ts";
import { type Cgroups, dropGroup, dropLeftGroups, findCgroups, noCgroups, rootsOf } from "./cgroup.ts";
import { FIXED_PATH } from "./environment.ts";
import { ProcessUnknown, SupervisorClosed } from "./errors.ts";
import { Keeper } from "./keeper.ts";
import { closeInherited, dropStaleRuns, findParents, parseBase } from "./launch.ts";
import { LOG_BOUND } from "./logs.ts";
import { type Incarnation, type ProcFs, systemProc } from "./proc.ts";
import { freshRecord, openRecords, type ProcessRecord, type Run } from "./record.ts";
import type { Fault, Shared } from "./shared.ts";
import { learnMain, logFileOf } from "./start.ts";
import { snapshot, stopRun } from "./tree.ts";
import type { ProcessSpec, ProcessStatus, Supervisor } from "./types.ts";

export interface SupervisorOptions {
  /** Its own folder (made 0700): `<stateDir>/supervision`. */
  dir: string;
  invoker: { uid: number; gid: number; name: string };
  /** The root is "/": PATH is fixed, accounts are real. */
  real: boolean;
  /** PATH where the root is another. */
  path: string;
  lang?: string;
  clock?: Clock;
  proc?: ProcFs;
  /** "auto" looks for what is writable; a test may bring its own or none. */
  cgroups?: "auto" | "none";
  /** Bytes of output kept, twice: in the file and in the copy before it. */
  logBound?: number;
  random?: () => number;
  fault?: Fault;
}

const TICK = 250;
const FLOOD_TICK = 20;
/** Of what inotify or the end of a child did not tell. */
const POLL = 1_000;
/** Of descendants, where there is no cgroup. */
const REMEMBER = 5_000;

export function createSupervisor(options: SupervisorOptions): Supervisor {
  return new ProcessSupervisor(options);
}

function home(): string {
  try {
    return userInfo().homedir;
  } catch {
    // An account without an entry.
    return "/";
  }
}

class ProcessSupervisor implements Supervisor {
  private readonly keepers = new Map<string, Keeper>();
  private readonly listeners = new Set<(id: string, event: HostEvent | null) => void>();
  private readonly stopping = new AbortController();
  private readonly shared: Shared;
  private watcher: FSWatcher | null = null;
  private ticking: Promise<void> = Promise.resolve();

  constructor(options: SupervisorOptions) {
    mkdirSync(options.dir, { recursive: true, mode: 0o700 });
    const dir = realpathSync(options.dir);
    const runs = join(dir, "runs");
    mkdirSync(runs, { recursive: true, mode: 0o700 });
    const group = `mesh-${createHash("sha256").update(dir).digest("hex").slice(0, 12)}`;
    const cgroups: Cgroups = options.cgroups === "none" ? noCgroups : findCgroups(group);
    this.shared = {
      records: openRecords(dir),
      runs,
      proc: options.proc ?? systemProc(),
      clock: options.clock ?? systemClock,
      cgroups,
      invoker: { ...options.invoker, home: home() },
      base: { path: options.real ? FIXED_PATH : options.path, lang: options.lang ?? "C.UTF-8" },
      logBound: options.logBound ?? LOG_BOUND,
      random: options.random ?? Math.random,
      fault: options.fault ?? (() => undefined),
      emit: (id, kind, detail) => this.emit(id, kind, detail),
      signal: this.stopping.signal,
    };
  }

  async resume(): Promise<void> {
    closeInherited();
    const { proc, records, runs } = this.shared;
    const parents = findParents(proc, runs);
    const ids = new Set(records.ids());
    for (const base of parents.keys()) {
      const id = parseBase(base)?.id;
      if (id) ids.add(id);
    }
    for (const id of ids) {
      const { record, aside } = records.load(id);
      if (aside) this.emit(id, "state-set-aside", `unreadable record kept as ${aside}`);
      const own = [...parents].filter(([base]) => parseBase(base)?.id === id);
      await this.adopt(record ?? freshRecord(id, this.shared.clock.now()), own, record === null);
    }
    const named = (base: string) =>
      parents.has(base) || (this.keepers.get(parseBase(base)?.id ?? "")?.names(base) ?? false);
    dropStaleRuns(runs, named, this.shared.clock.now());
    dropLeftGroups(this.shared.cgroups);
    this.watchRuns();
    this.ticking = this.tick();
    await Promise.all([...this.keepers.values()].map((keeper) => keeper.resume()));
  }

  async ensure(spec: ProcessSpec, signal?: AbortSignal): Promise<{ changed: boolean }> {
    let keeper = this.keepers.get(spec.id);
    if (!keeper) {
      keeper = new Keeper(this.shared, freshRecord(spec.id, this.shared.clock.now()));
      this.keepers.set(spec.id, keeper);
    }
    return keeper.ensure(spec, signal);
  }

  differs(spec: ProcessSpec): "absent" | "same" | "differs" {
    return this.keepers.get(spec.id)?.differs(spec) ?? "absent";
  }

  async remove(id: string): Promise<void> {
    const keeper = this.keepers.get(id);
    if (!keeper) return;
    await keeper.remove();
    this.keepers.delete(id);
  }

  async restart(id: string): Promise<void> {
    await this.keeper(id).restart();
  }

  async reload(id: string): Promise<void> {
    await this.keeper(id).reload();
  }

  status(id: string): ProcessStatus | null {
    return this.keepers.get(id)?.status() ?? null;
  }

  list(): ProcessStatus[] {
    return [...this.keepers.values()].map((keeper) => keeper.status());
  }

  logFile(id: string): string {
    return logFileOf(this.shared, id);
  }

  limits(): string[] {
    const { track, memory, cpu } = this.shared.cgroups;
    const lines: string[] = [];
    if (!track)
      lines.push(
        "processes: cgroups are not writable here, so a program that leaves its session and its parents is ended only where it was seen at a check or still writes to its output",
      );
    for (const [what, enforced] of [["memory", memory] as const, ["cpu", cpu] as const]) {
      const bounded = [...this.keepers.values()].filter((keeper) => keeper.bounds()[what] !== null);
      const ids = bounded.map((keeper) => keeper.id).sort();
      if (ids.length > 0 && !enforced)
        lines.push(`limits.${what} is not enforced here (cgroups are not writable): ${ids.join(", ")}`);
    }
    return lines;
  }

  onChange(listener: (id: string, event: HostEvent | null) => void): void {
    this.listeners.add(listener);
  }

  async close(): Promise<void> {
    this.stopping.abort(new SupervisorClosed({ id: "all" }));
    this.watcher?.close();
    await Promise.all([...this.keepers.values()].map((keeper) => keeper.close()));
    await this.ticking;
    for (const keeper of this.keepers.values()) keeper.tidy();
    if (this.keepers.size === 0) for (const root of rootsOf(this.shared.cgroups)) dropGroup(root);
  }

  private keeper(id: string): Keeper {
    const keeper = this.keepers.get(id);
    if (!keeper) throw new ProcessUnknown({ id, known: [...this.keepers.keys()].sort() });
    return keeper;
  }

  /** Joins a record with the parent that lives, if one does. A second one can only be of a state that was put back: it goes. */
  private async adopt(record: ProcessRecord, own: [string, Incarnation][], lost: boolean): Promise<void> {
    const [current] = own.filter(([base]) => base === record.run?.base);
    const chosen = current ?? own.sort((a, b) => b[1].start - a[1].start)[0];
    for (const [base, parent] of own) if (base !== chosen?.[0]) await this.endStray(record.id, base, parent);
    if (chosen && chosen !== current) record.run = this.rebuiltRun(chosen[0], chosen[1]);
    else if (current) record.run!.parent = current[1];
    if (lost && !record.run) return;
    this.keepers.set(record.id, new Keeper(this.shared, record));
    if (lost) this.emit(record.id, "note", "its record was lost; what runs was found again by its parent");
  }

  private rebuiltRun(base: string, parent: Incarnation): Run {
    const { cgroups, clock } = this.shared;
    const groups = rootsOf(cgroups).map((root) => join(root, basename(base)));
    const run: Run = {
      base,
      key: parseBase(base)?.key ?? "",
      at: clock.now(),
      parent,
      main: null,
      seen: [],
      cgroups: groups.filter((group) => existsSync(group)),
      logAt: 0,
      passed: false,
    };
    learnMain(this.shared, run);
    return run;
  }

  private async endStray(id: string, base: string, parent: Incarnation): Promise<void> {
    const { proc, clock } = this.shared;
    // Its output file is the other copy's too, so it says nothing of whose a process is.
    const stray = { proc, clock, id, run: this.rebuiltRun(base, parent), log: "", grace: 10_000 };
    try {
      await stopRun({ ...stray, signal: "SIGTERM" });
      this.emit(id, "note", `a second copy (pid ${parent.pid}) was ended`);
    } catch (error) {
      this.emit(id, "failed", messageOf(error));
    }
  }

  private watchRuns(): void {
    try {
      this.watcher = watch(this.shared.runs, (_, name) => {
        if (name?.endsWith(".exit")) this.keepers.get(parseBase(name)?.id ?? "")?.poke();
      });
      this.watcher.on("error", () => this.watcher?.close());
    } catch {
      // No inotify left: the poll finds exits, later.
    }
  }

  private async tick(): Promise<void> {
    const { clock, signal, proc } = this.shared;
    let polled = 0;
    let remembered = 0;
    for (let wait = TICK; !signal.aborted; ) {
      await clock.sleep(wait, signal).catch(() => undefined);
      if (signal.aborted) return;
      const now = clock.monotonic();
      wait = TICK;
      for (const keeper of this.keepers.values()) if (keeper.tendLog()) wait = FLOOD_TICK;
      if (now - polled >= POLL) {
        polled = now;
        for (const keeper of this.keepers.values()) {
          keeper.tidy();
          keeper.poke();
        }
      }
      if (!this.shared.cgroups.track && this.keepers.size > 0 && now - remembered >= REMEMBER) {
        remembered = now;
        const look = snapshot(proc);
        for (const keeper of this.keepers.values()) keeper.remember(look);
      }
    }
  }

  private emit(id: string, kind: HostEvent["kind"] | null, detail = ""): void {
    const event = kind && { at: iso(this.shared.clock.now()), kind, resource: id, detail };
    for (const listener of this.listeners) listener(id, event);
  }
}
