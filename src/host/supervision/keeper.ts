import { existsSync } from "node:fs";
import { isDeepStrictEqual } from "node:util";
import { MeshError, messageOf } from "../../errors.ts";
import { dropGroup } from "./cgroup.ts";
import type { CheckResult } from "./check.ts";
import { endRun, sweep } from "./ending.ts";
import { OnceFailed, SpawnFailed, SupervisorClosed } from "./errors.ts";
import { dropRunFiles, giveUp, readExit, readPid } from "./launch.ts";
import { lastSince } from "./logs.ts";
import { Output } from "./output.ts";
import { afterEnd, type End, freshPolicy, steadied } from "./policy.ts";
import { isAlive, signal, upFor } from "./proc.ts";
import { prove } from "./proving.ts";
import type { ProcessRecord, Run } from "./record.ts";
import { nextRun } from "./schedule.ts";
import { keyOf, type Shared } from "./shared.ts";
import { begin, learnMain, logFileOf } from "./start.ts";
import { exitText, FAILED_CHECKS, type Live, statusOf, versionOf } from "./status.ts";
import { membersOf, type Snapshot } from "./tree.ts";
import type { ProcessSpec, ProcessStatus } from "./types.ts";

const LAST_LINES = 10;
/** setTimeout's reach is 24 days, and the wall clock may step meanwhile. */
const LONGEST_SLEEP = 60_000;

/**
 * Keeps one process. Everything that changes its record goes through `exclusive`, one at a time; what merely waits
 * (backoff, checks, the next scheduled run) is one task that `arm` replaces.
 */
export class Keeper {
  readonly id: string;
  private readonly record: ProcessRecord;
  private readonly shared: Shared;
  private queue: Promise<unknown> = Promise.resolve();
  private waiting: AbortController | null = null;
  private readonly ends = new Set<() => void>();
  private live: Live = { alive: false, checkFails: 0, checkError: null };
  private litter: string[] = [];
  private readonly output: Output;

  constructor(shared: Shared, record: ProcessRecord) {
    this.id = record.id;
    this.shared = shared;
    this.record = record;
    this.output = new Output(logFileOf(shared, record.id), shared.logBound, shared.clock);
  }

  status(): ProcessStatus {
    if (this.record.run && !this.record.run.main) learnMain(this.shared, this.record.run);
    return statusOf(this.record, { ...this.live, alive: this.alive() });
  }

  differs(spec: ProcessSpec): "absent" | "same" | "differs" {
    const { wanted, removing } = this.record;
    if (removing || (!wanted && !this.record.run)) return "absent";
    if (this.lacks(spec)) return "differs";
    return isDeepStrictEqual(wanted, spec) ? "same" : "differs";
  }

  /** After `resume` found out what became of its run: `parent` is the live parent, if there is one. */
  resume(): Promise<void> {
    return this.exclusive(async () => {
      const run = this.record.run;
      if (run && !this.runLives(run)) await this.found(run);
      else if (run) learnMain(this.shared, run);
      await this.settle().catch((error) => this.note(error));
    });
  }

  async ensure(spec: ProcessSpec, signal?: AbortSignal): Promise<{ changed: boolean }> {
    if (spec.schedule !== null) nextRun(this.id, spec.schedule, this.shared.clock.now());
    const changed = await this.exclusive(() => this.want(spec));
    if (changed && spec.run === "once" && spec.schedule === null) await this.once(spec, signal);
    return { changed };
  }

  remove(): Promise<void> {
    return this.exclusive(async () => {
      this.disarm();
      this.record.removing = true;
      this.save();
      this.shared.fault("supervision:stopping");
      if (this.record.run) await this.stop(this.record.run);
      this.tidy();
      this.shared.records.forget(this.id);
    });
  }

  restart(): Promise<void> {
    return this.exclusive(async () => {
      const spec = this.record.wanted;
      if (!spec) return;
      this.disarm();
      if (this.record.run) await this.stop(this.record.run);
      this.record.policy = { ...freshPolicy, restarts: this.record.policy.restarts + 1 };
      this.forgetTrouble();
      this.record.done = null;
      await this.start(spec);
      this.emit("restarted", "asked for");
    });
  }

  reload(): Promise<void> {
    const { wanted, run } = this.record;
    if (!wanted?.reload) return this.restart();
    return this.exclusive(async () => {
      if (run?.main && signal(this.shared.proc, run.main, wanted.reload!.signal as NodeJS.Signals))
        this.emit("reloaded", `${wanted.reload!.signal} to ${run.main.pid}`);
    });
  }

  /** What its declaration bounds. */
  bounds(): ProcessSpec["limits"] {
    return this.record.wanted?.limits ?? { memory: null, cpu: null };
  }

  /** The files of this run are still needed. */
  names(base: string): boolean {
    return this.record.run?.base === base;
  }

  /** Removes the cgroups of runs that are over. */
  tidy(): void {
    this.litter = this.litter.filter((group) => !dropGroup(group));
  }

  /** Something may have ended: looks, and acts on it. Cheap when nothing did. */
  poke(): void {
    const run = this.record.run;
    if (!run || (this.runLives(run) && !existsSync(`${run.base}.exit`))) return;
    this.exclusive(async () => {
      if (this.record.run !== run || this.record.removing) return;
      // Ended first, then the file: the parent writes it before it ends.
      const over = !this.runLives(run);
      const exit = readExit(run.base);
      if (over || exit) await this.ended(run, exit, "ended");
    }).catch((error) => this.note(error));
  }

  /** Keeps the output within its bound; true while it grows so fast that the next look should be soon. */
  tendLog(): boolean {
    try {
      return this.output.tend(this.record.run !== null, (bytes, say) => {
        this.record.droppedLogBytes += bytes;
        if (!say) return;
        this.save();
        this.emit(
          "note",
          `it writes more than is kept: ${this.record.droppedLogBytes} bytes of output dropped`,
        );
      });
    } catch (error) {
      this.note(error);
      return false;
    }
  }

  /** Where there is no cgroup: remembers descendants that may leave session and parents. */
  remember(look: Snapshot): void {
    const run = this.record.run;
    if (!run || run.cgroups.length > 0 || !this.alive()) return;
    const known = new Set(run.seen.map((who) => `${who.pid}.${who.start}`));
    const fresh = membersOf(this.shared.proc, run, null, look).filter(
      (who) => who.pid !== run.main?.pid && !known.has(`${who.pid}.${who.start}`),
    );
    const seen = run.seen.filter((who) => isAlive(this.shared.proc, who));
    if (fresh.length === 0 && seen.length === run.seen.length) return;
    run.seen = [...seen, ...fresh];
    this.save();
  }

  async close(): Promise<void> {
    this.disarm();
    for (const end of this.ends) end();
    await this.queue.catch(() => undefined);
  }

  // ---- inside `exclusive` from here on

  private async want(spec: ProcessSpec): Promise<boolean> {
    const record = this.record;
    record.removing = false;
    const same = record.wanted?.digest === spec.digest;
    if (!this.lacks(spec)) {
      if (isDeepStrictEqual(record.wanted, spec)) return false;
      // Its policies are not part of its digest: they are taken over by what runs.
      record.wanted = spec;
      if (record.proven?.digest === spec.digest) record.proven = spec;
      this.save();
      this.arm();
      return false;
    }
    const stopAs = versionOf(record) ?? spec;
    record.wanted = spec;
    if (!same) {
      record.policy = freshPolicy;
      record.done = record.done === spec.digest ? record.done : null;
      this.forgetTrouble();
    }
    this.save();
    await this.settle(stopAs);
    return true;
  }

  /** Makes run what is to run now, ending another version; what already is as wanted is left alone. */
  private async settle(stopAs?: ProcessSpec): Promise<void> {
    const { record } = this;
    const version = versionOf(record);
    if (record.removing || record.policy.halted || !version) return;
    if (record.run && this.misplaced()) {
      this.disarm();
      await this.stop(record.run, stopAs);
    }
    const idle = !record.run && record.policy.due === null;
    const once = version.run === "once";
    if (idle && !once) await this.start(version);
    else if (idle && version.schedule === null && stopAs && record.done !== version.digest)
      await this.start(version);
    else this.arm();
  }

  /** Something has to be started or ended for `spec` to be what is kept. */
  private lacks(spec: ProcessSpec): boolean {
    if (this.record.wanted?.digest !== spec.digest || this.misplaced()) return true;
    return spec.run === "once" && spec.schedule === null && this.record.done !== spec.digest;
  }

  /** A run of another version than the one that is to run. */
  private misplaced(): boolean {
    const version = versionOf(this.record);
    return this.record.run !== null && version !== null && this.record.run.key !== keyOf(version.digest);
  }

  /** @throws what kept it from starting, after the policy took it for a failed start */
  private async start(spec: ProcessSpec): Promise<void> {
    this.live = { alive: false, checkFails: 0, checkError: null };
    try {
      await begin(this.shared, this.record, spec, () => this.poke());
    } catch (error) {
      if (this.shared.signal.aborted) throw error;
      this.record.error = messageOf(error);
      this.record.exit = null;
      const fault = error instanceof MeshError && !(error instanceof SpawnFailed);
      if (spec.run === "once") this.finishOnce(spec, false);
      else
        await this.follow({ up: 0, passing: false, cause: fault ? "ended" : "host" }).catch(() => undefined);
      throw error;
    }
    this.record.error = null;
    this.save();
    this.emit("started", `pid ${this.record.run?.main?.pid ?? this.record.run?.parent?.pid ?? "?"}`);
    this.arm();
    this.poke();
  }

  /** A recorded run that no longer lives, found by a host that starts. */
  private async found(run: Run): Promise<void> {
    if (run.parent === null && giveUp(run.base)) {
      // Its pid file stays, for a parent that comes late.
      this.litter.push(...run.cgroups);
      this.record.run = null;
      this.save();
      return;
    }
    const here = run.parent ?? run.main;
    const rebooted = here !== null && here.boot !== this.shared.proc.bootId();
    await this.ended(run, readExit(run.base), rebooted ? "reboot" : "ended");
  }

  private async ended(
    run: Run,
    exit: { code: number; at: number } | null,
    cause: End["cause"],
  ): Promise<void> {
    const { record, shared } = this;
    this.disarm();
    const now = shared.clock.now();
    const up = exit
      ? Math.max(0, exit.at - run.at)
      : run.main && cause === "ended"
        ? upFor(shared.proc, run.main)
        : now - run.at;
    record.exit = { code: exit?.code ?? null, at: now, up };
    record.last = lastSince(logFileOf(shared, this.id), run.logAt, LAST_LINES);
    record.since = now;
    const left = cause === "reboot" ? 0 : await sweep(shared, this.id, run, versionOf(record));
    const text = exitText(record.exit);
    const line =
      record.last[record.last.length - 1] ??
      (readPid(run.base) === null ? `its parent could not write in ${shared.runs}` : undefined);
    const said = `exit ${text} after ${Math.round(up) / 1000} s${left ? `, leaving ${left} process(es) that were ended` : ""}`;
    const passing = run.passed && this.live.checkFails === 0;
    this.clear(run);
    const version = versionOf(record);
    if (!version) {
      this.save();
      return;
    }
    this.emit("exit", line ? `${said}: ${line}` : said);
    if (version.run === "once") {
      const good = record.exit.code === 0;
      record.error = good ? null : said;
      this.finishOnce(version, good);
      return;
    }
    record.error = cause === "reboot" ? null : left ? `${said}; run it in the foreground` : said;
    await this.follow({ up, passing, cause }).catch((error) => this.note(error));
  }

  private async follow(end: Pick<End, "up" | "passing" | "cause">): Promise<void> {
    const { record, shared } = this;
    const version = versionOf(record)!;
    const previous = record.proven !== null && record.proven.digest !== record.wanted?.digest;
    const next = afterEnd(
      version.restart,
      record.policy,
      { ...end, previous, random: shared.random() },
      shared.clock.now(),
    );
    record.policy = next.policy;
    if (next.do === "halt") {
      this.save();
      this.emit("halted", `${next.policy.failures} failures in a row; \`mesh restart\` tries again`);
      return;
    }
    if (next.do === "roll-back") this.emit("rolled-back", "the version before is put back");
    if (next.delay === 0) return await this.start(versionOf(record)!);
    this.save();
    this.arm();
    this.emit(null);
  }

  private finishOnce(spec: ProcessSpec, good: boolean): void {
    if (good) this.record.done = spec.digest;
    this.save();
    if (!good) this.emit("failed", this.record.error ?? "failed");
    for (const end of this.ends) end();
    this.arm();
  }

  private async stop(run: Run, as?: ProcessSpec): Promise<void> {
    await endRun(this.shared, this.id, run, as ?? versionOf(this.record)).catch((error) => {
      this.arm();
      throw error;
    });
    const exit = readExit(run.base);
    const now = this.shared.clock.now();
    this.record.exit = { code: exit?.code ?? null, at: now, up: now - run.at };
    this.record.since = now;
    this.clear(run);
    for (const end of this.ends) end();
  }

  /** Its cgroups go a little later: its parent may be in them for a moment yet, and nobody has to wait for that. */
  private clear(run: Run): void {
    this.record.run = null;
    this.litter.push(...run.cgroups);
    dropRunFiles(run.base);
  }

  private forgetTrouble(): void {
    this.record.error = null;
    this.record.last = [];
    this.record.exit = null;
  }

  // ---- waiting

  private disarm(): void {
    this.waiting?.abort();
    this.waiting = null;
  }

  private arm(): void {
    this.disarm();
    const spec = versionOf(this.record);
    if (!spec || this.record.removing || this.record.policy.halted || this.shared.signal.aborted) return;
    const stop = new AbortController();
    this.waiting = stop;
    const signal = AbortSignal.any([stop.signal, this.shared.signal]);
    const work =
      this.record.run && spec.run === "service"
        ? this.proveRun(spec, this.record.run, signal)
        : this.record.policy.due !== null
          ? this.startAt(spec, this.record.policy.due, signal)
          : spec.schedule !== null
            ? this.startAt(spec, nextRun(this.id, spec.schedule, this.shared.clock.now()), signal)
            : Promise.resolve();
    work.catch((error) => {
      if (!signal.aborted) this.note(error);
    });
  }

  private async startAt(spec: ProcessSpec, due: number, signal: AbortSignal): Promise<void> {
    const { clock } = this.shared;
    for (let left = due - clock.now(); left > 0; left = due - clock.now())
      await clock.sleep(
        Math.min(left, LONGEST_SLEEP, spec.schedule ? LONGEST_SLEEP : spec.restart.max * 2),
        signal,
      );
    await this.exclusive(async () => {
      if (signal.aborted) return;
      if (!this.record.run) await this.start(versionOf(this.record) ?? spec).catch(() => undefined);
      else this.arm();
    });
  }

  private proveRun(spec: ProcessSpec, run: Run, signal: AbortSignal): Promise<void> {
    return prove({
      shared: this.shared,
      spec,
      run,
      signal,
      current: () => this.record.run === run,
      steady: () => this.record.policy.failures === 0,
      took: (result) => this.exclusive(() => this.checked(spec, run, result)),
    });
  }

  private async checked(spec: ProcessSpec, run: Run, result: CheckResult): Promise<void> {
    const { record, live } = this;
    if (record.run !== run) return;
    const before = `${live.checkFails >= FAILED_CHECKS} ${live.checkError} ${run.passed}`;
    live.checkFails = result === null ? 0 : live.checkFails + 1;
    live.checkError = result;
    if (result === null) this.passed(spec, run);
    else if (run.passed && live.checkFails >= FAILED_CHECKS) return this.unhealthy(run, result);
    if (before !== `${live.checkFails >= FAILED_CHECKS} ${live.checkError} ${run.passed}`) this.emit(null);
  }

  private passed(spec: ProcessSpec, run: Run): void {
    const { record, shared } = this;
    const first = !run.passed;
    run.passed = true;
    if (run.main && upFor(shared.proc, run.main) >= spec.restart.resetAfter) {
      const policy = steadied(record.policy);
      if (policy !== record.policy) {
        record.policy = policy;
        this.save();
      }
    }
    if (!first) return;
    if (!record.policy.rolledBack) record.proven = record.wanted;
    this.save();
  }

  private async unhealthy(run: Run, why: string): Promise<void> {
    this.disarm();
    this.emit("failed", `${FAILED_CHECKS} checks in a row failed, it is restarted: ${why}`);
    const up = run.main ? upFor(this.shared.proc, run.main) : 0;
    await this.stop(run);
    this.record.error = why;
    await this.follow({ up, passing: false, cause: "unhealthy" });
  }

  // ---- small things

  /** Waits for a run-once that was begun. */
  private async once(spec: ProcessSpec, signal?: AbortSignal): Promise<void> {
    const over = () => !this.record.run || this.record.run.key !== keyOf(spec.digest);
    while (!over() && !this.shared.signal.aborted && !signal?.aborted)
      await new Promise<void>((done) => {
        const end = () => {
          this.ends.delete(end);
          signal?.removeEventListener("abort", end);
          done();
        };
        this.ends.add(end);
        signal?.addEventListener("abort", end);
      });
    if (!over()) throw new SupervisorClosed({ id: this.id });
    if (this.record.done === spec.digest) return;
    const exit = this.record.exit ? exitText(this.record.exit) : "unknown";
    throw new OnceFailed({ id: this.id, exit, last: this.record.last });
  }

  private alive(): boolean {
    return this.record.run !== null && this.runLives(this.record.run);
  }

  private runLives(run: Run): boolean {
    return isAlive(this.shared.proc, run.main) || isAlive(this.shared.proc, run.parent);
  }

  /** A full disk must not end supervising: what could not be written is written with the next change. An intent must be. */
  private save(): void {
    try {
      this.shared.records.save(this.record);
    } catch (error) {
      this.note(error);
    }
  }

  private emit(kind: Parameters<Shared["emit"]>[1], detail?: string): void {
    this.shared.emit(this.id, kind, detail);
  }

  /** An error that nobody waits for: shown with the process, and never the end of supervising it. */
  private note(error: unknown): void {
    if (this.shared.signal.aborted) return;
    this.record.error = messageOf(error);
    this.emit("failed", this.record.error);
  }

  private exclusive<T>(work: () => Promise<T>): Promise<T> {
    const next = this.queue.then(() => {
      if (this.shared.signal.aborted) throw new SupervisorClosed({ id: this.id });
      return work().catch((cause) => {
        if (this.shared.signal.aborted) throw new SupervisorClosed({ id: this.id }, { cause });
        throw cause;
      });
    });
    this.queue = next.catch(() => undefined);
    return next;
  }
}
