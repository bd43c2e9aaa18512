/**
 * What whoever caught the error does next: `retry` it soon by itself, `wait` for something outside
 * (a broker, a person), or nothing until the input changes (`stalled`).
 */
export type Next = "retry" | "wait" | "stalled";

export type Facts = Record<string, unknown>;

/**
 * The base of every error the product throws. `code` is stable and documented in docs/errors.md,
 * `facts` are typed data, and the message is one sentence built from them; nothing parses messages.
 */
export class MeshError<F extends Facts = Facts> extends Error {
  readonly code: string;
  readonly facts: F;
  readonly next: Next;

  constructor(code: string, next: Next, message: string, facts: F, options?: ErrorOptions) {
    super(message, options);
    this.name = "MeshError";
    this.code = code;
    this.next = next;
    this.facts = facts;
  }
}

/**
 * Declares one error class: `export class RefMissing extends meshError("ref-missing", "wait", (f: { ref: string }) => …) {}`.
 * @param code lower-case words joined by `-`, documented in docs/errors.md (test/architecture checks this)
 * @param sentence one line: the place, what was found, what is allowed, the remedy
 */
export function meshError<F extends Facts>(code: string, next: Next, sentence: (facts: F) => string) {
  return class extends MeshError<F> {
    static readonly code = code;
    constructor(facts: F, options?: ErrorOptions) {
      super(code, next, sentence(facts), facts, options);
    }
  };
}

/** The message of anything thrown, on one line. */
export function messageOf(error: unknown): string {
  const text = error instanceof Error ? error.message || error.name : String(error);
  return text.replace(/\s*\n\s*/g, " ");
}
