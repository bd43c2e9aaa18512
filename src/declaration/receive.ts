import { setTimeout as delay } from "node:timers/promises";
import { ZodError } from "zod";
import { meshError, messageOf } from "../errors.ts";
import { type Broker, brokerFailure, readStored } from "../io/nats.ts";
import { revisionOf } from "./canonical.ts";
import { DECLARATIONS_STREAM, sequenceIn, subjects } from "./names.ts";
import { type ObjectStore, objectStore } from "./objects.ts";
import { Declaration, DeclarationEntry } from "./schema.ts";
import { verify } from "./sign.ts";

export class DeclarationRefused extends meshError(
  "declaration-refused",
  "stalled",
  (f: { node: string; why: string; sequence: number | null }) =>
    `declaration ${f.sequence ?? "?"} for ${f.node}: ${f.why}; it is not applied, the one before stays in force`,
) {}

/** What a host holds to: of declarations it accepted, the highest sequence and its revision. */
export interface Accepted {
  sequence: number;
  revision: string | null;
}

export interface ReceiveOptions {
  /** ed25519, SPKI, base64. null: the key is not pinned, and signatures are not looked at (`mesh-host` without a context). */
  pinnedKey: string | null;
  /** What was accepted before this start, from the host's own state. */
  accepted: Accepted | null;
  /** One at a time; the newest waits while it runs, those between are passed over. After a throw it comes again at a later look. */
  onDeclaration(declaration: Declaration): void | Promise<void>;
  /** Once for each refused entry. */
  onRefused(reason: DeclarationRefused): void | Promise<void>;
  onError?(error: unknown): void;
  signal?: AbortSignal;
  objects?: ObjectStore;
  /** Between looks at the key without a hint, in ms. */
  every?: number;
}

export interface Receiver {
  /** Looks at the key now. */
  look(): void;
  stop(): Promise<void>;
}

/** Waits between looks for what a hint promised, in ms; a put that the stream refused is hinted too and never comes. */
const HINT_WAITS = [5, 20, 50, 100, 250, 500, 1_000, 2_000];
const RETRY_WAITS = [100, 250, 500, 1_000, 2_000, 5_000];

/**
 * Receives the declarations of `node`. It reads the node's own key: on every connect, every 60 s, and when something is
 * published there. No consumer is made: a plain subscription is the hint (it cannot fall silent when the store is wiped, and
 * a node can be allowed exactly its own subject), what counts is what the stream holds.
 */
export function receiveDeclarations(broker: Broker, node: string, options: ReceiveOptions): Receiver {
  const objects = options.objects ?? objectStore(broker);
  const ended = new AbortController();
  const subject = subjects.declaration(node);
  let accepted = options.accepted;
  let refusedText: string | null = null;
  let hint: { sequence: number; after: number; tries: number } | null = null;
  let lastSeq = -1;
  let asked = false;
  let working: Promise<void> | null = null;
  let handling: Promise<void> = Promise.resolve();
  let waiting: Declaration | null = null;
  let subscribed = false;
  let woken = new AbortController();

  /** While the link is down a look waits for the next connect, which looks anyway. */
  function look(): void {
    asked = true;
    if (working || ended.signal.aborted || !broker.status.connected) return;
    working = work().finally(() => {
      working = null;
      if (asked) look();
    });
  }

  async function work(): Promise<void> {
    let tries = 0;
    while (asked && broker.status.connected && !ended.signal.aborted) {
      asked = false;
      try {
        const sequence = await readOnce();
        tries = 0;
        // The hint may be ahead of the stream: both come from the same publish, by different ways.
        const behind = hint && !(lastSeq > hint.after && sequence >= hint.sequence) ? hint : null;
        if (behind && behind.tries < HINT_WAITS.length) {
          await pause(HINT_WAITS[behind.tries++]!);
          asked = true;
        } else if (!asked) hint = null;
      } catch (error) {
        if (ended.signal.aborted || !broker.status.connected) return;
        // Not answered: the controller has not made the bucket yet.
        if (brokerFailure(error) !== "timeout") options.onError?.(error);
        await pause(RETRY_WAITS[Math.min(tries++, RETRY_WAITS.length - 1)]!);
        asked = true;
      }
    }
  }

  /** Returns the sequence that stands there, 0 for none. An empty key changes nothing: it never means "remove everything". */
  async function readOnce(): Promise<number> {
    const message = await readStored(broker, DECLARATIONS_STREAM, subject);
    lastSeq = message?.seq ?? -1;
    if (!message || message.data.length === 0) return 0;
    const text = Buffer.from(message.data).toString("utf8");
    if (text === refusedText) return Number.MAX_SAFE_INTEGER;
    const judged = await judge(text);
    if ("refused" in judged) {
      refusedText = text;
      await Promise.resolve(options.onRefused(judged.refused)).catch((error) => options.onError?.(error));
      return Number.MAX_SAFE_INTEGER;
    }
    refusedText = null;
    const { declaration } = judged;
    if (declaration) accept(declaration);
    return judged.sequence;
  }

  async function judge(
    text: string,
  ): Promise<{ refused: DeclarationRefused } | { declaration: Declaration | null; sequence: number }> {
    const refuse = (why: string, sequence: number | null = null) => ({
      refused: new DeclarationRefused({ node, why, sequence }),
    });
    const entry = parse(text, (value) => DeclarationEntry.parse(value));
    if ("why" in entry) return refuse(`the entry is unreadable (${entry.why})`);
    const { sequence } = entry.value;
    if (accepted && sequence < accepted.sequence)
      return refuse(`its sequence is lower than ${accepted.sequence}, which was accepted before`, sequence);
    let inner = text;
    if ("object" in entry.value) inner = (await objects.get(entry.value.object)).toString("utf8");
    const outcome = checkDeclaration(inner, { node, pinnedKey: options.pinnedKey, wrapped: inner === text });
    if (typeof outcome === "string") return refuse(outcome, sequence);
    if (outcome.sequence !== sequence)
      return refuse(`the entry says sequence ${sequence}, the declaration ${outcome.sequence}`, sequence);
    if (accepted?.sequence === sequence) {
      if (accepted.revision !== outcome.revision)
        return refuse("the same sequence was accepted before with another digest", sequence);
      return { declaration: null, sequence };
    }
    return { declaration: outcome, sequence };
  }

  function accept(declaration: Declaration): void {
    const before = accepted;
    accepted = { sequence: declaration.sequence, revision: declaration.revision };
    const mine = accepted;
    const idle = waiting === null;
    waiting = declaration;
    if (!idle) return;
    handling = handling.then(async () => {
      const newest = waiting;
      waiting = null;
      if (!newest || ended.signal.aborted) return;
      try {
        await options.onDeclaration(newest);
      } catch (error) {
        if (accepted === mine) accepted = before;
        options.onError?.(error);
      }
    });
  }

  /** Ends early at a hint. */
  async function pause(ms: number): Promise<void> {
    woken = new AbortController();
    await delay(ms, undefined, { signal: AbortSignal.any([ended.signal, woken.signal]) }).catch(() => {});
  }

  function subscribe(): void {
    subscribed = true;
    broker.connection.subscribe(subject, {
      callback: (error, message) => {
        if (error || ended.signal.aborted) return;
        const sequence = Math.max(hint?.sequence ?? 0, sequenceIn(message.data) ?? 0);
        hint = { sequence, after: lastSeq, tries: 0 };
        woken.abort();
        look();
      },
    });
  }

  const off = broker.onConnect(() => {
    if (!subscribed) subscribe();
    // The store may have been wiped: its numbers say nothing about those before.
    lastSeq = -1;
    look();
  });
  const timer = setInterval(look, options.every ?? 60_000);
  const stop = async () => {
    ended.abort();
    off();
    clearInterval(timer);
    await working;
    await handling;
  };
  options.signal?.addEventListener("abort", () => void stop(), { once: true });
  return { look, stop };
}

/**
 * Checks the JSON text of a declaration: whose it is, who signed it, that the digest is the body's, its shape.
 * @param from.wrapped the text is a whole entry, the declaration is its member
 * @returns the declaration, or why it is refused
 */
export function checkDeclaration(
  text: string,
  from: { node: string; pinnedKey: string | null; wrapped?: boolean },
): Declaration | string {
  const read = parse(text, (value) => {
    const raw = from.wrapped ? (value as { declaration: unknown }).declaration : value;
    // Before the shape: that of another release may differ, but these are what it is refused by.
    return raw as Partial<Declaration> | null;
  });
  if ("why" in read) return `it is unreadable (${read.why})`;
  const raw = read.value;
  const node = raw?.body?.node;
  if (node !== from.node) return `it is for ${JSON.stringify(node ?? null)}, not for this node`;
  if (!raw?.signature && from.pinnedKey !== null) return "it is not signed";
  const shape = Declaration.safeParse(raw);
  const signed = shape.success ? shape.data : null;
  if (from.pinnedKey !== null && !verify(raw as Declaration, from.pinnedKey))
    return "its signature is not by the pinned key";
  if (revisionOf(raw?.body) !== raw?.revision) return "its revision is not the digest of what it holds";
  if (!signed) return `it has another shape than this release knows (${firstIssue(shape.error)})`;
  return signed;
}

function parse<T>(text: string, take: (value: unknown) => T): { value: T } | { why: string } {
  try {
    return { value: take(JSON.parse(text)) };
  } catch (error) {
    return { why: error instanceof SyntaxError ? "no JSON" : firstIssue(error) };
  }
}

function firstIssue(error: unknown): string {
  if (!(error instanceof ZodError)) return messageOf(error);
  const issue = error.issues[0];
  return issue ? `${issue.path.join(".") || "it"}: ${issue.message}` : "unknown";
}
