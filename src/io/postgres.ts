import pg from "pg";
import { MeshError, meshError, messageOf } from "../errors.ts";

export class StoreUnreachable extends meshError(
  "store-unreachable",
  "retry",
  (f: { store: string; why: string }) =>
    `the store at ${f.store} cannot be reached (${f.why}); it is tried again, check that Postgres runs there`,
) {}

export class StoreRefused extends meshError(
  "store-refused",
  "wait",
  (f: { store: string; why: string }) =>
    `the store at ${f.store} lets nobody in with these credentials (${f.why}); correct MESH_STORE or the context's "store"`,
) {}

export class StoreBusy extends meshError(
  "store-busy",
  "retry",
  (f: { store: string; why: string }) => `the store at ${f.store} is busy (${f.why}); try again`,
) {}

export class TransactionLost extends meshError(
  "transaction-lost",
  "retry",
  (f: { store: string; why: string }) =>
    `the store at ${f.store} ended this transaction (${f.why}); nothing of it was saved, it is tried again`,
) {}

export class CommitUnknown extends meshError(
  "commit-unknown",
  "retry",
  (f: { store: string }) =>
    `the store at ${f.store} was lost while it saved, so that nobody knows whether it did; it is read again`,
) {}

export class StoreFailed extends meshError(
  "store-failed",
  "stalled",
  (f: { store: string; sqlstate: string; why: string }) =>
    `the store at ${f.store} refused a statement (${f.sqlstate}: ${f.why}); please report this`,
) {}

/** Anything statements can be sent to: the pool, or one transaction. int8 comes back as number, timestamptz as ISO 8601 UTC. */
export interface Db {
  query<R extends object = Record<string, unknown>>(text: string, values?: readonly unknown[]): Promise<R[]>;
}

export interface Tx extends Db {
  /** Runs `work` in a savepoint: what it did is undone when it throws, the transaction stays usable. */
  attempt<T>(work: () => Promise<T>): Promise<T>;
}

/** Milliseconds, set for this transaction only; the server ends it where one is passed. */
export interface TransactionLimits {
  statementMs: number;
  idleMs: number;
  /** Waiting for any lock. */
  lockMs: number;
}

export interface Store extends Db {
  /** host:port/database, without credentials. */
  readonly at: string;
  /**
   * One transaction on one connection; rolled back when `work` throws, with whatever it threw. When the connection is lost
   * during COMMIT it rejects with CommitUnknown: it may have been saved. Whoever calls reads again, or does it again where
   * that has no second effect.
   */
  transaction<T>(limits: TransactionLimits, work: (tx: Tx) => Promise<T>): Promise<T>;
  close(): Promise<void>;
}

export interface StoreOptions {
  /** Shown in pg_stat_activity. */
  applicationName: string;
  max?: number;
  connectMs?: number;
  /** A statement that has no answer by then fails, and its connection is dropped. */
  queryMs?: number;
}

/** A pool on `url`. Connects on demand, and again after each loss. */
export function openStore(url: string, options: StoreOptions): Store {
  const at = withoutCredentials(url);
  const pool = new pg.Pool({
    connectionString: url,
    application_name: options.applicationName,
    max: options.max ?? 8,
    connectionTimeoutMillis: options.connectMs ?? 5_000,
    query_timeout: options.queryMs ?? 30_000,
    idleTimeoutMillis: 60_000,
    keepAlive: true,
    keepAliveInitialDelayMillis: 5_000,
    allowExitOnIdle: true,
    types: { getTypeParser: typeParser as never },
  });
  // A connection lost while idle is replaced on the next use; without a listener it would end the process.
  pool.on("error", () => {});
  pool.on("connect", (client) => client.on("error", () => {}));
  const store: Store = {
    at,
    async query<R extends object>(text: string, values: readonly unknown[] = []) {
      try {
        return (await pool.query<R & pg.QueryResultRow>(text, [...values])).rows as R[];
      } catch (error) {
        throw storeError(error, at);
      }
    },
    transaction: (limits, work) => runTransaction(pool, store, limits, work),
    close: () => pool.end(),
  };
  return store;
}

async function runTransaction<T>(
  pool: pg.Pool,
  store: Store,
  limits: TransactionLimits,
  work: (tx: Tx) => Promise<T>,
): Promise<T> {
  const { at } = store;
  const client = await pool.connect().catch((error) => {
    throw storeError(error, at);
  });
  let broken = false;
  try {
    await send(client, begin(limits), at);
    const result = await work(transactionOn(client, at));
    await commit(client, at);
    return result;
  } catch (error) {
    broken = isLoss(error) || (await client.query("ROLLBACK").then(never, always));
    throw error;
  } finally {
    client.release(broken);
  }
}

const never = () => false;
const always = () => true;

function isLoss(error: unknown): boolean {
  return (
    error instanceof StoreUnreachable || error instanceof TransactionLost || error instanceof CommitUnknown
  );
}

async function send(
  client: pg.PoolClient,
  text: string,
  at: string,
  values: readonly unknown[] = [],
): Promise<pg.QueryResult> {
  try {
    return await client.query(text, [...values]);
  } catch (error) {
    throw storeError(error, at);
  }
}

/** One round trip. Local to the transaction, so that they hold behind a pooling proxy too. */
function begin(limits: TransactionLimits): string {
  return [
    "BEGIN",
    `SET LOCAL statement_timeout = ${limits.statementMs}`,
    `SET LOCAL idle_in_transaction_session_timeout = ${limits.idleMs}`,
    `SET LOCAL lock_timeout = ${limits.lockMs}`,
    `SET LOCAL tcp_user_timeout = ${limits.idleMs}`,
  ].join("; ");
}

function transactionOn(client: pg.PoolClient, at: string): Tx {
  const tx: Tx = {
    async query<R extends object>(text: string, values: readonly unknown[] = []) {
      return (await send(client, text, at, values)).rows as R[];
    },
    async attempt(work) {
      await tx.query("SAVEPOINT attempt");
      try {
        const result = await work();
        await tx.query("RELEASE SAVEPOINT attempt");
        return result;
      } catch (error) {
        await tx.query("ROLLBACK TO SAVEPOINT attempt");
        throw error;
      }
    },
  };
  return tx;
}

async function commit(client: pg.PoolClient, at: string): Promise<void> {
  let answer: pg.QueryResult;
  try {
    answer = await send(client, "COMMIT", at);
  } catch (error) {
    // Not by transaction id: a server that crashed may give the same id to another transaction.
    throw error instanceof StoreUnreachable ? new CommitUnknown({ store: at }, { cause: error }) : error;
  }
  // A transaction that failed before answers COMMIT with ROLLBACK, and no error.
  if (answer.command !== "COMMIT")
    throw new TransactionLost({ store: at, why: "a statement in it had failed" });
}

const SYSTEM_ERRORS = /^(E[A-Z]+|ENOTFOUND)$/;

/** What the driver or the server threw, as one of ours. Errors of our own pass through. */
export function storeError(error: unknown, at: string): unknown {
  if (error instanceof MeshError) return error;
  const why = messageOf(error);
  const facts = { store: at, why };
  const code = (error as { code?: unknown }).code;
  if (error instanceof pg.DatabaseError && typeof code === "string") return databaseError(code, facts, error);
  if (typeof code === "string" && SYSTEM_ERRORS.test(code))
    return new StoreUnreachable({ ...facts, why: code }, { cause: error });
  // The driver's own ("Connection terminated", "timeout exceeded") have no code; our mistakes are TypeErrors and the like.
  if (error instanceof Error && error.constructor === Error)
    return new StoreUnreachable(facts, { cause: error });
  if (error instanceof AggregateError) return new StoreUnreachable(facts, { cause: error });
  return error;
}

/** By SQLSTATE, https://www.postgresql.org/docs/current/errcodes-appendix.html */
function databaseError(code: string, facts: { store: string; why: string }, cause: Error): MeshError {
  if (code.startsWith("28") || code === "3D000") return new StoreRefused(facts, { cause });
  if (code.startsWith("08") || code.startsWith("57P")) return new StoreUnreachable(facts, { cause });
  if (code === "25P03" || code === "25P04" || code.startsWith("40"))
    return new TransactionLost(facts, { cause });
  if (code === "55P03" || code === "57014" || code.startsWith("53")) return new StoreBusy(facts, { cause });
  return new StoreFailed({ ...facts, sqlstate: code }, { cause });
}

const INT8 = 20;
const TIMESTAMPTZ = 1184;

function typeParser(oid: number, format?: "text" | "binary"): (value: string) => unknown {
  if (oid === INT8) return Number;
  if (oid === TIMESTAMPTZ) return (value) => new Date(value).toISOString();
  return pg.types.getTypeParser(oid, format as "text") as (value: string) => unknown;
}

function withoutCredentials(url: string): string {
  try {
    const { hostname, port, pathname, searchParams } = new URL(url);
    return `${searchParams.get("host") ?? hostname}:${port || 5432}${pathname}`;
  } catch {
    return "the given address";
  }
}
