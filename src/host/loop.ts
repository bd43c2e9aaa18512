import type { Declaration } from "../declaration/schema.ts";
import { messageOf } from "../errors.ts";
import type { Clock } from "../io/clock.ts";
import type { HostEvent, Report } from "../report/schema.ts";
import type { HostPlace } from "../resources/driver.ts";
import { type Account, accountOf, outcomeOf, type Situation } from "./account.ts";
import { type Difference, decide, differencesOf, type Step } from "./decide.ts";
import { type Drivers, type Execution, execute, type Pass, type Result } from "./execute.ts";
import { observe } from "./observe.ts";
import { type HostState, keyOf, type Loaded, pathOfKey, type StateStore } from "./state.ts";
import type { Supervisor } from "./supervision/types.ts";

export interface LoopParts {
  place: HostPlace;
  store: StateStore;
  loaded: Loaded;
  drivers: Drivers;
  supervisor: Supervisor;
  clock: Clock;
  fault(point: string): void;
  /** Before a full look: what was remembered of the user database is asked again. */
  forgetAccounts(): void;
  removeFolder(real: string): Promise<"removed" | "absent" | "not-empty">;
  /** Removes what a killed write of this real path left. */
  cleanTemp(real: string): Promise<void>;
  /** Something happened that people may want to see. */
  onEvent(event: HostEvent): void;
  /** The account of the host changed: `now` where it is a result or a failure. */
  onAccount(now: boolean): void;
  onError(error: unknown): void;
}

export interface HostLoop {
  /** A newer declaration. The one being applied is first brought to a safe point; of several only the newest is applied. */
  submit(declaration: Declaration): void;
  refused(reason: string): void;
  /** Looks at everything soon. */
  poke(): void;
  account(): Account;
  /** Aborts when what is being waited for is no longer worth it: the host ends, or something newer came. */
  passSignal(): AbortSignal;
  /** What is being kept true. */
  declared(): Declaration | null;
  /** What differs now; null for all. */
  differences(resource: string | null): Promise<Report["differences"]>;
  /** Starts a process (or a run-once) again, and forgets its failures. */
  restart(id: string): Promise<void>;
  /** Runs until the signal aborts. */
  run(signal: AbortSignal): Promise<void>;
  /** One pass over what is declared, at once. For `mesh-host apply`. */
  once(declaration: Declaration): Promise<Pass>;
}

interface Times {
  /** When the last pass ended, and the last full one; monotonic. */
  checked: number;
  reconciled: number;
  /** When the last pass began; wall clock. */
  looked: number;
}

export function createLoop(parts: LoopParts): HostLoop {
  return new Loop(parts);
}

class Loop implements HostLoop {
  private readonly parts: LoopParts;
  private readonly state: HostState;
  private declaration: Declaration | null;
  private pending: Declaration | null = null;
  private pass: Pass | null = null;
  private found: Report["differences"] = [];
  private refusal: string | null = null;
  /** Why the host itself cannot work now. */
  private trouble: string | null = null;
  private poked = false;
  /** No pass was made over this declaration yet. */
  private fresh = false;
  private wake: (() => void) | null = null;
  private outcome: string | null = null;
  private signal: AbortSignal | null = null;
  private breakOff = new AbortController();

  constructor(parts: LoopParts) {
    this.parts = parts;
    this.state = parts.loaded.state;
    this.declaration = parts.loaded.declaration;
  }

  submit(declaration: Declaration): void {
    this.pending = declaration;
    this.refusal = null;
    this.breakOff.abort();
    this.wake?.();
  }

  refused(reason: string): void {
    this.refusal = reason;
    this.event("refused", null, reason);
    this.parts.onAccount(true);
  }

  poke(): void {
    this.poked = true;
    this.wake?.();
  }

  account(): Account {
    return accountOf(this.situation());
  }

  private situation(): Situation {
    return {
      place: this.parts.place,
      declaration: this.declaration,
      state: this.state,
      pass: this.pass,
      differences: this.found,
      refused: this.refusal,
      trouble: this.trouble,
      supervisor: this.parts.supervisor,
    };
  }

  passSignal(): AbortSignal {
    return this.breakOff.signal;
  }

  declared(): Declaration | null {
    return this.declaration;
  }

  async differences(resource: string | null): Promise<Report["differences"]> {
    if (!this.declaration) return [];
    const all = differencesOf(await this.steps(this.declaration));
    return resource === null ? all : all.filter(({ id }) => id === resource);
  }

  async restart(id: string): Promise<void> {
    delete this.state.attempts[id];
    await this.parts.supervisor.restart(id);
    this.poke();
  }

  async run(signal: AbortSignal): Promise<void> {
    this.signal = signal;
    const end = () => {
      this.breakOff.abort();
      this.wake?.();
    };
    signal.addEventListener("abort", end, { once: true });
    this.parts.supervisor.onChange((_id, event) => this.processChanged(event));
    await this.begin();
    const times: Times = {
      checked: Number.NEGATIVE_INFINITY,
      reconciled: Number.NEGATIVE_INFINITY,
      looked: 0,
    };
    while (!signal.aborted) {
      const accepted = this.acceptPending();
      const now = this.parts.clock.monotonic();
      const full = accepted || now - times.reconciled >= (this.declaration?.body.host.reconcile ?? 0);
      const poked = this.poked;
      this.poked = false;
      times.looked = this.parts.clock.now();
      if (this.declaration) await this.guardedPass(full || poked, accepted || this.pass === null);
      times.checked = this.parts.clock.monotonic();
      if (full) times.reconciled = times.checked;
      await this.rest(times, signal);
    }
  }

  async once(declaration: Declaration): Promise<Pass> {
    await this.begin();
    this.pending = declaration;
    this.acceptPending();
    return this.doPass(true);
  }

  /** What was under way when the last host ended, and what it recorded, is put in order before anything is decided. */
  private async begin(): Promise<void> {
    const { loaded, place } = this.parts;
    for (const line of loaded.aside) this.event("state-set-aside", null, line);
    for (const key of Object.keys(this.state.intents)) {
      const path = pathOfKey(key);
      if (path !== null) await this.parts.cleanTemp(place.realPath(path)).catch(this.parts.onError);
    }
    if (loaded.rebuild && this.declaration) await this.rebuild(this.declaration);
    if (loaded.aside.length > 0) this.save();
  }

  /** What is as the last declaration has it counts as made by this host; an account never does, since that cannot be seen. */
  private async rebuild({ body }: Declaration): Promise<void> {
    const observed = await observe(body, this.state, this.parts.drivers, this.parts.supervisor);
    for (const resource of body.resources) {
      const key = keyOf(resource);
      if (resource.type === "user" || resource.type === "group" || this.state.entries[key]) continue;
      this.state.intents[key] = "make";
      const seen = observed.resources.get(resource.id);
      if (resource.type === "process" || !seen || seen instanceof Error || seen.state !== "same") continue;
      const driver = this.parts.drivers[resource.type] as Drivers["file"];
      const { record } = await driver.apply(resource as never, null, seen);
      const { id, module, type, digest } = resource;
      this.state.entries[key] = { id, module, type, digest, made: true, record, left: null };
      delete this.state.intents[key];
    }
    this.save();
  }

  private acceptPending(): boolean {
    const next = this.pending;
    if (!next) return false;
    this.pending = null;
    this.breakOff = new AbortController();
    const before = this.declaration;
    try {
      this.parts.store.saveDeclaration(next);
    } catch (error) {
      // It is worked all the same: where the record cannot be written either, the pass says so and changes nothing.
      this.parts.onError(error);
    }
    this.declaration = next;
    this.refusal = null;
    this.fresh = true;
    if (before?.revision !== next.revision) this.pass = null;
    tidy(this.state, next);
    return true;
  }

  private async guardedPass(full: boolean, tell: boolean): Promise<void> {
    const long = new AbortController();
    if (tell)
      this.parts.clock
        .sleep(1_000, long.signal)
        .then(() => this.parts.onAccount(true))
        .catch(() => undefined);
    try {
      const pass = await this.doPass(full);
      this.trouble = null;
      if (this.signal?.aborted) return;
      this.tell(tell, pass);
    } catch (error) {
      // Only the host's own documents can fail here: the machine is left as it is and looked at again.
      const again = this.trouble === messageOf(error);
      this.trouble = messageOf(error);
      this.parts.onError(error);
      if (again) return;
      this.event("failed", null, this.trouble);
      this.outcome = "failed";
      this.parts.onAccount(true);
    } finally {
      long.abort();
    }
  }

  private tell(first: boolean, pass: Pass): void {
    const outcome = outcomeOf(this.situation());
    const moved = outcome !== this.outcome;
    this.outcome = outcome;
    if (first && outcome === "applied")
      this.event("applied", null, pass.changed === 0 ? "nothing to do" : `${pass.changed} changed`);
    if (first || moved) this.parts.onAccount(true);
    else if (pass.changed > 0) this.parts.onAccount(false);
  }

  private async doPass(full: boolean): Promise<Pass> {
    const declaration = this.declaration!;
    if (full) this.parts.forgetAccounts();
    const steps = await this.steps(declaration, this.fresh);
    this.fresh = false;
    if (declaration.body.mode === "observe") {
      this.found = differencesOf(steps);
      this.pass = { results: new Map(this.found.map(leftAsIs)), changed: 0, finished: true };
      return this.pass;
    }
    this.found = [];
    const pass = await execute(steps, this.execution(declaration));
    this.pass = pass;
    return pass;
  }

  private async steps({ body }: Declaration, fresh = false): Promise<Step[]> {
    const { drivers, supervisor, clock } = this.parts;
    const observed = await observe(body, this.state, drivers, supervisor);
    return decide(body, this.state, { ...observed, fresh }, clock.now());
  }

  private execution(declaration: Declaration): Execution {
    const { drivers, place, clock, fault, removeFolder } = this.parts;
    return {
      declared: declaration.body,
      revision: declaration.revision,
      state: this.state,
      drivers,
      place,
      fault,
      removeFolder,
      now: () => clock.now(),
      save: () => this.save(),
      interrupted: () => this.pending !== null || this.signal?.aborted === true,
      event: (kind, resource, detail) => this.event(kind, resource, detail),
    };
  }

  private save(): void {
    this.parts.store.save(this.state);
  }

  private event(kind: HostEvent["kind"], resource: string | null, detail: string): void {
    this.parts.onEvent({ at: new Date(this.parts.clock.now()).toISOString(), kind, resource, detail });
  }

  private processChanged(event: HostEvent | null): void {
    if (event) this.parts.onEvent(event);
    const outcome = outcomeOf(this.situation());
    const moved = outcome !== this.outcome && this.pass?.finished === true;
    if (moved) {
      this.outcome = outcome;
      if (outcome === "applied") this.event("applied", null, "every process is proven");
    }
    this.parts.onAccount(moved || event !== null);
  }

  /** Until the next check, the next try, or something new. */
  private async rest(times: Times, signal: AbortSignal): Promise<void> {
    if (this.pending || this.poked || signal.aborted) return;
    const { clock } = this.parts;
    const waits = [60_000];
    if (this.declaration) {
      const { check, reconcile } = this.declaration.body.host;
      waits.push(times.checked + check - clock.monotonic(), times.reconciled + reconcile - clock.monotonic());
      // One that could have been tried in the last pass, and was not, waits for the next check like everything else.
      for (const { notBefore } of Object.values(this.state.attempts))
        if (notBefore > times.looked) waits.push(notBefore - clock.now());
    }
    const over = new AbortController();
    this.wake = () => over.abort();
    await clock.sleep(Math.max(20, Math.min(...waits)), over.signal).catch(() => undefined);
    this.wake = null;
  }
}

/** A new declaration tries at once what failed, and afresh what it changes; what was left by an older one is no longer listed. */
function tidy(state: HostState, { body, revision }: Declaration): void {
  const declared = new Map(body.resources.map(({ id, digest }) => [id, digest]));
  const recorded = new Set(Object.values(state.entries).map(({ id }) => id));
  for (const [id, attempt] of Object.entries(state.attempts)) {
    const digest = declared.get(id);
    if (digest === undefined ? recorded.has(id) : digest === attempt.digest) attempt.notBefore = 0;
    else delete state.attempts[id];
  }
  for (const [key, { left }] of Object.entries(state.entries))
    if (left && left.revision !== revision && pathOfKey(key) !== null) delete state.entries[key];
}

/** What an observed node says of a resource that differs: it was left, and why. */
function leftAsIs({ id, change, detail }: Difference): [string, Result] {
  return [id, { state: "skipped", error: null, note: `only observed: ${detail || change}` }];
}
