import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { emptyContext } from "../context.ts";
import { messageOf } from "../errors.ts";
import { readIfThere, takeLock } from "../io/durable.ts";
import { PartFailed } from "./errors.ts";
import { Keeper, knownParts, removePid, runningPid, writePid } from "./keep.ts";
import { type Layout, layoutOf } from "./layout.ts";
import { NodeList } from "./nodes.ts";
import { prepareKey, prepareState, type UpOptions, writeContext } from "./prepare.ts";
import { programPart, stopProcess } from "./program.ts";
import { reachExisting } from "./reach.ts";
import { brokerUrl, natsPart, postgresPart, storeUrl } from "./services.ts";
import { readState, type UpState, writeState } from "./state.ts";
import { stopWorkloads } from "./workloads.ts";

/** `programs` is the folder of mesh-controller.js and mesh-host.js; `env` what the parts inherit. */
export interface Surroundings {
  programs: string;
  env: NodeJS.ProcessEnv;
  say: (text: string) => void;
}

const READY_WITHIN = 60_000;
const CATALOGUE_WITHIN = 15_000;
const HOST_STOPS_WITHIN = 20_000;
const CONTROLLER_STOPS_WITHIN = 15_000;

/** The parent of all parts of one mesh. */
export class MeshUp {
  readonly layout: Layout;
  state!: UpState;
  private readonly around: Surroundings;
  private readonly keepers = new Map<string, Keeper>();
  private readonly ended = new AbortController();
  private nodes: NodeList | null = null;
  private following: Promise<void> = Promise.resolve();
  private lock: { free(): void } | null = null;

  constructor(dir: string, around: Surroundings) {
    this.layout = layoutOf(dir);
    this.around = around;
  }

  /** Resolves once the mesh is up. What it began is stopped again when it cannot come up. */
  async start(options: UpOptions): Promise<void> {
    const { layout } = this;
    mkdirSync(layout.run, { recursive: true });
    this.lock = takeLock(layout.run);
    writePid(layout, "up", process.pid);
    try {
      this.state = await prepareState(layout, options);
      await reachExisting(this.state);
      // Remembered only now: a wrong --store must not outlive its command.
      writeState(layout, this.state);
      await this.startServices();
      await this.startController();
      await Promise.all(this.state.hosts.map((node) => this.keepHost(node)));
      await this.firstNodes();
      this.following = this.followNodes();
    } catch (error) {
      await this.stop({ workloads: false });
      throw error;
    }
  }

  get hosts(): string[] {
    return this.state.hosts;
  }

  /** Stops everything in the order in which nobody misses another. */
  async stop(options: { workloads: boolean }): Promise<void> {
    this.ended.abort();
    await this.following;
    await this.nodes?.close();
    const host = (name: string) => name.startsWith("host-");
    await this.endAll([...this.keepers.keys()].filter(host));
    await stopParts(this.layout, knownParts(this.layout).filter(host));
    const stopped = !options.workloads || (await stopWorkloads(this.layout, this.around));
    await this.endAll(["controller"]);
    await this.endAll(["nats", "postgres"]);
    // Its pid file, left behind, tells `mesh down` that not everything was stopped.
    if (stopped) removePid(this.layout, "up");
    this.lock?.free();
  }

  private async endAll(names: string[]): Promise<void> {
    await Promise.all(
      names.map(async (name) => {
        await this.keepers.get(name)?.end();
        this.keepers.delete(name);
      }),
    );
  }

  private async startServices(): Promise<void> {
    const { layout, state } = this;
    const begin: Promise<void>[] = [];
    if (!state.store) begin.push(this.keeper(postgresPart(layout, state)).begin());
    if (!state.broker) begin.push(this.keeper(natsPart(layout, state, this.around.env.PATH ?? "")).begin());
    const results = await Promise.allSettled(begin);
    for (const result of results) if (result.status === "rejected") throw result.reason;
  }

  private async startController(): Promise<void> {
    const { layout, state, around } = this;
    const store = state.store ?? (await within(READY_WITHIN, () => storeUrl(state)));
    if (!store) {
      throw new PartFailed({
        part: "postgres",
        why: "takes no connections",
        log: layout.logFile("postgres"),
      });
    }
    const changed = await writeContext(layout, {
      ...emptyContext(),
      store,
      broker: state.broker ?? brokerUrl(state),
      catalogue: state.catalogue,
      ref: state.ref,
      http: `http://127.0.0.1:${state.httpPort}`,
      dir: layout.dir,
      publicKey: await prepareKey(layout),
      keyFile: layout.key,
    });
    // They read the context when they start.
    if (changed)
      await stopParts(
        layout,
        knownParts(layout).filter((name) => /^(controller|host-)/.test(name)),
      );
    const keeper = this.keeper(
      programPart({
        name: "controller",
        layout,
        args: [
          join(around.programs, "mesh-controller.js"),
          "serve",
          "--context",
          layout.context,
          "--http",
          String(state.httpPort),
        ],
        env: { ...around.env, ...(state.poll ? { MESH_POLL: state.poll } : {}) },
        stopWithin: CONTROLLER_STOPS_WITHIN,
      }),
    );
    await keeper.begin();
    await this.controllerReady(keeper);
  }

  private async controllerReady(keeper: Keeper): Promise<void> {
    const url = `http://127.0.0.1:${this.state.httpPort}/readyz`;
    const log = this.layout.logFile("controller");
    const ready = await within(READY_WITHIN, async () => {
      if (keeper.failures > 4) throw new PartFailed({ part: "controller", why: lastLine(log), log });
      const answer = await fetch(url, { signal: AbortSignal.timeout(2_000) }).catch(() => null);
      return answer?.ok ? true : null;
    });
    if (!ready)
      throw new PartFailed({ part: "controller", why: `is not ready within 60 s: ${lastLine(log)}`, log });
  }

  /** Waits for the catalogue to be read, so that `mesh up --detach` returns with its hosts started. */
  private async firstNodes(): Promise<void> {
    const context = JSON.parse(readIfThere(this.layout.context) ?? "{}") as { broker: string };
    this.nodes = new NodeList(context.broker);
    const nodes = this.nodes;
    await within(CATALOGUE_WITHIN, async () => ((await nodes.catalogueRead()) ? true : null));
    await this.syncHosts();
  }

  private async followNodes(): Promise<void> {
    const { signal } = this.ended;
    while (!signal.aborted) {
      await delay(1_000, undefined, { signal }).catch(() => {});
      if (!signal.aborted) await this.syncHosts();
    }
  }

  /** A host for each node. It ends only once its node is retired: a released one goes on with what it has. */
  private async syncHosts(): Promise<void> {
    const nodes = await this.nodes?.list().catch(() => null);
    if (!nodes || this.ended.signal.aborted) return;
    const before = this.state.hosts;
    const kept = new Set(before);
    const begin: Promise<void>[] = [];
    for (const node of nodes) {
      if (node.state === "retired") {
        kept.delete(node.name);
        if (!this.keepers.has(`host-${node.name}`)) continue;
        await this.endAll([`host-${node.name}`]);
        this.around.say(`host-${node.name} ended: its node is retired`);
      } else {
        kept.add(node.name);
        begin.push(this.keepHost(node.name));
      }
    }
    await Promise.all(begin);
    const hosts = [...kept].sort();
    if (hosts.join() === before.join()) return;
    this.state = { ...this.state, hosts };
    writeState(this.layout, this.state);
  }

  private async keepHost(node: string): Promise<void> {
    if (this.keepers.has(`host-${node}`)) return;
    const { layout, around } = this;
    const keeper = this.keeper(
      programPart({
        name: `host-${node}`,
        layout,
        args: [
          join(around.programs, "mesh-host.js"),
          "run",
          "--node",
          node,
          "--root",
          layout.nodeRoot(node),
          "--context",
          layout.context,
        ],
        env: around.env,
        stopWithin: HOST_STOPS_WITHIN,
      }),
    );
    await keeper.beginAnyway();
  }

  private keeper(part: ConstructorParameters<typeof Keeper>[0]): Keeper {
    const keeper = new Keeper(part, this.layout, this.around.say);
    this.keepers.set(part.name, keeper);
    return keeper;
  }
}

/** Stops parts by their pid files, for when their parent is gone. */
async function stopParts(layout: Layout, names: string[]): Promise<void> {
  await Promise.all(
    names.map(async (name) => {
      const pid = runningPid(layout, name);
      if (pid !== null) await stopProcess(pid, HOST_STOPS_WITHIN);
      removePid(layout, name);
    }),
  );
}

/** Stops what is left of a mesh whose parent is gone, workloads included. False: some of those may run on. */
export async function stopLeftovers(dir: string, around: Surroundings): Promise<boolean> {
  const layout = layoutOf(dir);
  const state = readState(layout);
  await stopParts(
    layout,
    knownParts(layout).filter((name) => name.startsWith("host-")),
  );
  const stopped = await stopWorkloads(layout, around);
  await stopParts(
    layout,
    knownParts(layout).filter((name) => name !== "postgres"),
  );
  if (state?.database) {
    const part = postgresPart(layout, state);
    const pid = runningPid(layout, "postgres") ?? (await part.find());
    if (pid !== null) await part.stop(pid);
    removePid(layout, "postgres");
  }
  if (stopped) removePid(layout, "up");
  return stopped;
}

/** Removes everything of a mesh that does not run any more. */
export async function purge(dir: string): Promise<void> {
  const layout = layoutOf(dir);
  const state = readState(layout);
  if (state?.database && !state.database.startsWith(`${layout.dir}/`)) {
    rmSync(state.database, { recursive: true, force: true });
  }
  rmSync(layout.dir, { recursive: true, force: true });
}

async function within<T>(ms: number, attempt: () => Promise<T | null>): Promise<T | null> {
  for (const until = Date.now() + ms; ; ) {
    const found = await attempt();
    if (found !== null || Date.now() > until) return found;
    await delay(50);
  }
}

/** The last line of a log, or the message in it where it is a line of JSON. */
function lastLine(file: string): string {
  const line = (readIfThere(file) ?? "").trim().split("\n").at(-1)?.trim() ?? "";
  try {
    const entry = JSON.parse(line) as { msg?: string };
    return entry.msg ?? line;
  } catch (error) {
    return line || messageOf(error);
  }
}
