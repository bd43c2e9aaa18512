import type { CatalogueReader } from "../catalogue/open.ts";
import type { Composer } from "../composition/compose.ts";
import { objectStore } from "../declaration/objects.ts";
import { createPublisher } from "../declaration/publish.ts";
import type { Signer } from "../declaration/sign.ts";
import { keepStreams, type StreamsState } from "../declaration/streams.ts";
import { messageOf } from "../errors.ts";
import { saveSeen } from "../inventory/catalogue.ts";
import { keepHouse } from "../inventory/housekeeping.ts";
import type { Inventory } from "../inventory/index.ts";
import { forgetPublished } from "../inventory/sending.ts";
import type { Clock } from "../io/clock.ts";
import type { Fault } from "../io/faults.ts";
import type { Broker } from "../io/nats.ts";
import { startFolding } from "./folding.ts";
import { type Log, tellReconciled } from "./log.ts";
import { createPersist } from "./persist.ts";
import { createPlanner } from "./planner.ts";
import { reconcile } from "./reconcile.ts";
import { createRunner } from "./runner.ts";
import { createSender } from "./sender.ts";

const SEND_AGAIN_EVERY = 30_000;
const HOUSE_EVERY = 600_000;

export interface DutyDeps {
  inventory: Inventory;
  broker: Broker;
  reader: CatalogueReader;
  composer: Composer;
  signer: Signer;
  clock: Clock;
  log: Log;
  ref: string;
  /** Between two safety reads of the ref, ms. */
  poll: number | undefined;
  seats: Readonly<Record<string, string>>;
  replicas: number;
  fault: Fault;
  /** The epoch turned out to be over, or the consumers were lost. */
  onLost(why: string): void;
}

/** What the active controller does while its epoch lasts. */
export interface Duty {
  /** Looks at the ref now; resolves when what was found is a plan, or refused. */
  look(): Promise<void>;
  /** Finishes what is in hand and starts nothing more. */
  stop(): Promise<void>;
}

/**
 * Watches the ref, makes plans, works them, publishes, and folds what hosts report; each part on its own, each tried again
 * for ever. All that changes anything carries the epoch, so that a controller that was paused changes nothing when it wakes.
 */
export function takeDuty(deps: DutyDeps, epoch: number): Duty {
  const { inventory, broker, log } = deps;
  const ending = new AbortController();
  const { signal } = ending;
  const persist = createPersist({ ...deps, signal });
  const objects = objectStore(broker);
  const publisher = createPublisher(broker, { signer: deps.signer, objects });
  const sender = createSender({ ...deps, publisher, objects });
  const sending = createRunner(() => persist("sending", () => sender.send()));
  const planner = createPlanner({ ...deps, epoch, persist, onReleased: () => void sending.ask() });
  const memory = { facts: null, kept: new Map<string, number>() };
  /** Why the catalogue's remote cannot be read at present. */
  let unread: string | null = null;

  const reconciling = createRunner(() =>
    persist("reading the catalogue", async () => {
      const found = await reconcile({ ...deps, epoch, sender, memory });
      tellReconciled(log, found);
      // What was read is the clone, which may be behind: `status` says so until the remote answers again.
      if (unread !== null && found.outcome !== "refused") await saveUnread(deps, unread);
      if (found.outcome === "merged") await planner.work("merge");
      else void sending.ask();
    }),
  );
  const folding = startFolding({
    ...deps,
    epoch,
    persist,
    signal,
    onProgress: () => planner.ask(),
    onRaised: () => void sending.ask(),
    onNotices(kinds) {
      if (kinds.has("merge")) void reconciling.ask();
      if (kinds.has("push") || kinds.has("freeze")) void sending.ask();
      planner.ask();
    },
  });

  keepStreams(broker, {
    replicas: deps.replicas,
    signal,
    onState: onStreams(
      deps,
      () => {
        sender.forget();
        void reconciling.ask();
      },
      () => {
        void sending.ask();
        planner.ask();
      },
    ),
    onError: (error) => log.warn({ err: error }, "the streams could not be looked at, tried again"),
  });
  void persist("watching the catalogue", () =>
    watchCatalogue(deps, signal, (why) => {
      unread = why;
      return reconciling.ask();
    }),
  );
  void reconciling.ask();
  planner.ask();
  const again = setInterval(() => void sending.ask(), SEND_AGAIN_EVERY);
  const house = setInterval(() => void keepHouse(inventory, epoch).catch(() => undefined), HOUSE_EVERY);

  return {
    look: () => reconciling.ask(),
    async stop() {
      ending.abort(new Error("not active any more"));
      clearInterval(again);
      clearInterval(house);
      await Promise.all([reconciling.stop(), planner.stop(), sending.stop(), folding.stop()]);
    },
  };
}

/** @param onHint is told why the remote cannot be read, null when it can */
function watchCatalogue(
  deps: DutyDeps,
  signal: AbortSignal,
  onHint: (unread: string | null) => Promise<void>,
): Promise<void> {
  return deps.reader.watch({
    signal,
    onHint: () => onHint(null),
    onError: (error) => {
      deps.log.warn({ err: error }, "the catalogue's remote could not be read, tried again");
      void onHint(messageOf(error));
    },
    ...(deps.poll === undefined ? {} : { poll: deps.poll }),
  });
}

function saveUnread({ inventory, ref }: DutyDeps, message: string): Promise<void> {
  const problem = { file: "", line: 0, column: 0, path: "", message };
  return saveSeen(inventory.db, { ref, commit: null, subject: "", problems: [problem] });
}

/** Streams made anew hold nothing of what was published: all of it is published again. */
function onStreams(deps: DutyDeps, onWiped: () => void, onSeen: () => void) {
  let created: string | null = null;
  return async (state: StreamsState): Promise<void> => {
    const now = JSON.stringify(state.created);
    if (state.fresh.length > 0 || (created !== null && created !== now)) {
      await forgetPublished(deps.inventory.db);
      deps.log.warn(
        { streams: state.fresh },
        "the broker's store is new: everything wanted is published again",
      );
      onWiped();
    }
    created = now;
    onSeen();
  };
}
