import { MeshError, messageOf, type Next } from "../errors.ts";

/** Headers of a call and of its answer. The service-error ones are those of NATS micro services, which stock tools show. */
export const CALL_HEADER = "Mesh-Call";
export const ERROR_HEADER = "Nats-Service-Error";
export const ERROR_CODE_HEADER = "Nats-Service-Error-Code";
/** The sha256 of an answer that is too large for a message: it is read from the object store. */
export const OBJECT_HEADER = "Mesh-Object";

/** What the other side threw, with its code, facts and sentence. */
export class RemoteError extends MeshError {}

/** The number that service-error headers carry, beside the code in words: like HTTP's. */
export function numberOf(next: Next | null): number {
  if (next === null) return 500;
  return { stalled: 400, wait: 409, retry: 503 }[next];
}

/** @param clean takes out of the sentence what must not leave this program */
export function encodeError(
  error: unknown,
  clean: (text: string) => string,
): { number: number; message: string; body: Uint8Array } {
  const mesh = error instanceof MeshError ? error : null;
  const message = clean(messageOf(error));
  const wire = {
    code: mesh?.code ?? "internal",
    message,
    next: mesh?.next ?? "stalled",
    facts: mesh?.facts ?? {},
  };
  const body = Buffer.from(
    JSON.stringify({ error: wire }, (_, value) => (typeof value === "bigint" ? String(value) : value)),
  );
  return { number: numberOf(mesh?.next ?? null), message, body };
}

/** The typed error of an error answer; `told` is what its headers say, where the body does not. */
export function decodeError(body: Uint8Array, told: { code: string; message: string }): RemoteError {
  try {
    return parseError(JSON.parse(Buffer.from(body).toString("utf8")));
  } catch {
    return new RemoteError("internal", "stalled", told.message || `error ${told.code}`, {});
  }
}

/** Checked by hand: `mesh` reads this on every call, and a schema library would double its start-up time. */
function parseError(body: {
  error?: { code?: unknown; message?: unknown; next?: unknown; facts?: unknown };
}): RemoteError {
  const { code, message, next, facts } = body.error ?? {};
  if (typeof code !== "string" || typeof message !== "string") throw new TypeError("not an error of ours");
  const known: Next = next === "retry" || next === "wait" ? next : "stalled";
  return new RemoteError(
    code,
    known,
    message,
    typeof facts === "object" && facts !== null ? { ...facts } : {},
  );
}
