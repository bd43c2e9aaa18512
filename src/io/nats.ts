import { setTimeout as delay } from "node:timers/promises";
import {
  connect,
  DebugEvents,
  ErrorCode,
  Events,
  type JetStreamClient,
  type JetStreamManager,
  type MsgHdrs,
  type NatsConnection,
  NatsError,
} from "nats";
import { meshError, messageOf } from "../errors.ts";

export class BrokerUrlInvalid extends meshError(
  "broker-url-invalid",
  "stalled",
  (f: { found: string }) =>
    `broker URL: found ${f.found}; allowed is nats://[USER:PASSWORD@]HOST:PORT or tls://…, several joined by commas`,
) {}

export class BrokerUnreachable extends meshError(
  "broker-unreachable",
  "retry",
  (f: { address: string; why: string }) =>
    `broker ${f.address}: cannot be reached (${f.why}); check that nats-server runs there and that the credential is right`,
) {}

export interface LinkLog {
  info(facts: object, message: string): void;
  warn(facts: object, message: string): void;
}

export interface BrokerStatus {
  connected: boolean;
  /** When it came to be as it is, ISO 8601. "Link down since" while not connected. */
  since: string;
  /** Why it is not connected, one line without credentials; null while connected or not tried yet. */
  error: string | null;
}

/** One connection to NATS, that lasts as long as the program: it waits for the broker, and reconnects, for ever. */
export interface Broker {
  /** HOST:PORT, several joined by commas; never a credential. */
  readonly address: string;
  readonly status: Readonly<BrokerStatus>;
  /** The connection. Throws BrokerUnreachable before the first connect. While away, NATS buffers what is published here. */
  readonly connection: NatsConnection;
  readonly js: JetStreamClient;
  manager(): Promise<JetStreamManager>;
  /** Bytes the server takes in one message; its default before the first connect. */
  readonly maxPayload: number;
  /** Resolves while connected, now or later. Rejects with BrokerUnreachable after `within` ms, or with the signal's reason. */
  connected(options?: { within?: number; signal?: AbortSignal }): Promise<void>;
  /** Core NATS, only when connected (false: not sent). For what is worthless later, such as a heartbeat. */
  publishNow(subject: string, payload: Uint8Array): boolean;
  /** Runs `listener` at each connect, and soon when connected already. Returns what takes it away. */
  onConnect(listener: () => void | Promise<void>): () => void;
  onDisconnect(listener: () => void): () => void;
  /** Sends what is under way, within 2 s, and ends. */
  close(): Promise<void>;
}

export interface BrokerOptions {
  url: string;
  /** Shown in the server's list of connections. */
  name: string;
  signal?: AbortSignal | undefined;
  log?: LinkLog | undefined;
  /**
   * Tries to connect come at random times up to so many ms apart (1,500), so that a whole fleet does not come back in one
   * instant. A controller passes less: its seat is given up when it hears nothing for two seconds.
   */
  spread?: number;
  /** Between pings in ms; two unanswered ones mean that the link is down. */
  pingInterval?: number;
}

const FIRST_TRY_WITHIN = 5_000;
/** A direct read of a stream that is not there is never answered. */
const READ_WITHIN = 1_500;
const SAY_AGAIN_AFTER = 60_000;
const SPREAD = 1_500;

/** Text in which `//user:password@` is left out, wherever it occurs. */
export function withoutCredentials(text: string): string {
  return text.replace(/\/\/[^\s/@]*@/g, "//");
}

interface Target {
  servers: string[];
  tls: boolean;
  user: string | undefined;
  pass: string | undefined;
  token: string | undefined;
}

/** Takes a broker URL apart. The error never shows a credential. */
export function parseBrokerUrl(url: string): Target {
  const parts = url
    .split(",")
    .map((part) => part.trim())
    .filter((part) => part !== "");
  const target: Target = { servers: [], tls: false, user: undefined, pass: undefined, token: undefined };
  for (const part of parts) {
    const whole = part.includes("://") ? part : `nats://${part}`;
    const parsed = URL.canParse(whole) ? new URL(whole) : null;
    if (!parsed || !/^(nats|tls):$/.test(parsed.protocol) || !parsed.hostname) {
      throw new BrokerUrlInvalid({ found: JSON.stringify(withoutCredentials(part)) });
    }
    target.servers.push(`${parsed.hostname}:${parsed.port || 4222}`);
    target.tls ||= parsed.protocol === "tls:";
    if (parsed.username && parsed.password) {
      target.user ??= decodeURIComponent(parsed.username);
      target.pass ??= decodeURIComponent(parsed.password);
    } else if (parsed.username) target.token ??= decodeURIComponent(parsed.username);
  }
  if (target.servers.length === 0) throw new BrokerUrlInvalid({ found: "nothing" });
  return target;
}

/**
 * Opens the link. Returns at once, connected or not: use `connected()` or `onConnect()` to wait.
 * Throws only BrokerUrlInvalid.
 */
export function connectBroker(options: BrokerOptions): Broker {
  return new Link(options, parseBrokerUrl(options.url));
}

class Link implements Broker {
  readonly address: string;
  status: BrokerStatus;
  #connection: NatsConnection | null = null;
  #manager: Promise<JetStreamManager> | null = null;
  #js: JetStreamClient | null = null;
  #options: BrokerOptions;
  #listeners = { connect: new Set<() => void | Promise<void>>(), disconnect: new Set<() => void>() };
  #ended = new AbortController();

  constructor(options: BrokerOptions, target: Target) {
    this.#options = options;
    this.address = target.servers.join(",");
    this.status = { connected: false, since: new Date().toISOString(), error: null };
    options.signal?.addEventListener("abort", () => void this.close(), { once: true });
    if (options.signal?.aborted) this.#ended.abort();
    void this.#firstConnect(target);
  }

  get connection(): NatsConnection {
    if (this.#connection) return this.#connection;
    throw this.#unreachable();
  }

  get js(): JetStreamClient {
    this.#js ??= this.connection.jetstream({ timeout: 5_000 });
    return this.#js;
  }

  manager(): Promise<JetStreamManager> {
    this.#manager ??= this.connection.jetstreamManager({ checkAPI: false, timeout: 5_000 });
    return this.#manager;
  }

  get maxPayload(): number {
    return this.#connection?.info?.max_payload ?? 1024 * 1024;
  }

  publishNow(subject: string, payload: Uint8Array): boolean {
    if (!this.status.connected || this.#ended.signal.aborted) return false;
    this.connection.publish(subject, payload);
    return true;
  }

  async connected(options: { within?: number; signal?: AbortSignal } = {}): Promise<void> {
    if (this.status.connected) return;
    const limits = [this.#ended.signal, options.signal].filter((signal) => signal !== undefined);
    const timeout = options.within === undefined ? null : AbortSignal.timeout(Math.ceil(options.within));
    const given = AbortSignal.any(timeout ? [...limits, timeout] : limits);
    await new Promise<void>((resolve, reject) => {
      const off = this.onConnect(() => {
        off();
        given.removeEventListener("abort", aborted);
        resolve();
      });
      const aborted = () => {
        off();
        reject(options.signal?.aborted ? options.signal.reason : this.#unreachable());
      };
      given.addEventListener("abort", aborted, { once: true });
      if (given.aborted) aborted();
    });
  }

  onConnect(listener: () => void | Promise<void>): () => void {
    this.#listeners.connect.add(listener);
    if (this.status.connected) {
      queueMicrotask(() => {
        if (this.status.connected && this.#listeners.connect.has(listener)) this.#call(listener);
      });
    }
    return () => void this.#listeners.connect.delete(listener);
  }

  onDisconnect(listener: () => void): () => void {
    this.#listeners.disconnect.add(listener);
    return () => void this.#listeners.disconnect.delete(listener);
  }

  async close(): Promise<void> {
    this.#ended.abort();
    const connection = this.#connection;
    if (!connection || connection.isClosed()) return;
    // A drain waits for the server's answer, which never comes from a paused or absent one.
    if (this.status.connected) await Promise.race([connection.drain().catch(() => {}), delay(2_000)]);
    if (!connection.isClosed()) await connection.close();
    this.#set(false, "closed");
  }

  /** The library cannot be told to give up its first wait, so that wait is done here. */
  async #firstConnect(target: Target): Promise<void> {
    let saidAt = Number.NEGATIVE_INFINITY;
    while (!this.#ended.signal.aborted) {
      try {
        const connection = await connect(this.#connectOptions(target));
        if (this.#ended.signal.aborted) return void (await connection.close());
        this.#connection = connection;
        void this.#follow(connection);
        return this.#set(true, null);
      } catch (error) {
        this.status.error = withoutCredentials(messageOf(error));
        if (Date.now() - saidAt > SAY_AGAIN_AFTER) {
          saidAt = Date.now();
          const facts = { broker: this.address, error: this.status.error };
          this.#options.log?.warn(facts, `waiting for the broker ${this.address}`);
        }
        await delay(this.#pause(), undefined, { signal: this.#ended.signal }).catch(() => {});
      }
    }
  }

  #pause(): number {
    const spread = this.#options.spread ?? SPREAD;
    return spread * (0.1 + 0.9 * Math.random());
  }

  #connectOptions(target: Target) {
    const { user, pass, token } = target;
    return {
      servers: target.servers,
      name: this.#options.name,
      ...(user === undefined ? {} : { user }),
      ...(pass === undefined ? {} : { pass }),
      ...(token === undefined ? {} : { token }),
      ...(target.tls ? { tls: {} } : {}),
      timeout: FIRST_TRY_WITHIN,
      pingInterval: this.#options.pingInterval ?? 10_000,
      maxPingOut: 2,
      reconnect: true,
      maxReconnectAttempts: -1,
      reconnectDelayHandler: () => this.#pause(),
      // A stack for each request that may fail costs a tenth of a publish.
      noAsyncTraces: true,
      // A broker that is being set up again may refuse a good credential for a while.
      ignoreAuthErrorAbort: true,
    };
  }

  async #follow(connection: NatsConnection): Promise<void> {
    for await (const event of connection.status()) {
      if (event.type === Events.Disconnect) this.#set(false, "the connection was lost");
      else if (event.type === Events.Reconnect) this.#set(true, null);
      else if (event.type === Events.Error) {
        const error = withoutCredentials(String(event.data));
        if (!this.status.connected) this.status.error = error;
        this.#options.log?.warn({ broker: this.address, error }, `broker ${this.address}: ${error}`);
      } else if (event.type === DebugEvents.StaleConnection) this.status.error = "it does not answer";
    }
    if (!this.#ended.signal.aborted) this.#set(false, "the connection was closed");
  }

  #set(connected: boolean, error: string | null): void {
    if (this.status.connected === connected) return;
    this.status = { connected, since: new Date().toISOString(), error };
    if (connected) {
      this.#options.log?.info({ broker: this.address }, `connected to the broker ${this.address}`);
      for (const listener of [...this.#listeners.connect]) this.#call(listener);
    } else {
      if (!this.#ended.signal.aborted)
        this.#options.log?.warn({ broker: this.address }, `broker ${this.address}: ${error}; reconnecting`);
      for (const listener of [...this.#listeners.disconnect]) listener();
    }
  }

  #call(listener: () => void | Promise<void>): void {
    Promise.resolve()
      .then(listener)
      .catch((error: unknown) => {
        if (this.#ended.signal.aborted) return;
        const why = withoutCredentials(messageOf(error));
        this.#options.log?.warn({ broker: this.address, error: why }, `after connecting: ${why}`);
      });
  }

  #unreachable(): BrokerUnreachable {
    const why = this.#ended.signal.aborted ? "closed" : (this.status.error ?? "no answer yet");
    return new BrokerUnreachable({ address: this.address, why });
  }
}

/** What came of a JetStream request that failed: by the server's own codes, never by text. */
export function brokerFailure(
  error: unknown,
): "missing" | "no-stream" | "wrong-last-sequence" | "timeout" | "other" {
  if (!(error instanceof NatsError)) return "other";
  if (error.code === ErrorCode.Timeout) return "timeout";
  const code = error.api_error?.err_code;
  if (code === 10071) return "wrong-last-sequence";
  if (code === 10059 || error.code === ErrorCode.NoResponders) return "no-stream";
  if (code === 10014 || code === 10037 || error.code === "404") return "missing";
  return "other";
}

/** The promise, or BrokerUnreachable as soon as the link is lost: an answer to what was asked before will not come. */
export function whileConnected<T>(broker: Broker, promise: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const lost = () =>
      reject(new BrokerUnreachable({ address: broker.address, why: "the connection was lost" }));
    const off = broker.onDisconnect(lost);
    promise.then(resolve, reject).finally(off);
    if (!broker.status.connected) lost();
  });
}

export interface StoredMessage {
  data: Uint8Array;
  headers: MsgHdrs | undefined;
  /** Its sequence in the stream. */
  seq: number;
}

/**
 * Reads one stored message of a stream that allows direct reads: the newest of `subject`, or the next one at or after `from`.
 * Needs no consumer. Null when there is none. Throws what `brokerFailure` tells apart.
 */
export async function readStored(
  broker: Broker,
  stream: string,
  subject: string,
  from?: number,
): Promise<StoredMessage | null> {
  const newest = from === undefined;
  const query = newest ? undefined : JSON.stringify({ seq: from, next_by_subj: subject });
  const target = `$JS.API.DIRECT.GET.${stream}${newest ? `.${subject}` : ""}`;
  const answer = await whileConnected(
    broker,
    broker.connection.request(target, query, { timeout: READ_WITHIN }),
  );
  const { headers } = answer;
  if (headers && headers.code >= 400) {
    if (headers.code === 404) return null;
    throw new NatsError(headers.description, String(headers.code));
  }
  return { data: answer.data, headers, seq: Number(headers?.get("Nats-Sequence") ?? 0) };
}
