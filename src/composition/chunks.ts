import { hash } from "node:crypto";
import {
  BodyTemplate,
  DigestOf,
  type Draft,
  StoredBody,
  Template,
  type TemplatePart,
} from "../resources/draft.ts";
import { INLINE_LIMIT } from "../resources/file/compile.ts";

/**
 * The canonical JSON of a draft, cut where values go in: text as it is, a slot's value (JSON-escaped, inside a string), the
 * digest of a resource, or a body whose size decides its shape. Filling it is joining strings; nothing is parsed again.
 */
export type Chunk = string | number | { digestOf: string } | { body: readonly TemplatePart[] };

/** A body that is in the object store. Sizes in bytes; `oid` or `bytes` is where it comes from. */
export interface StoredObject {
  oid: string | null;
  bytes: Buffer | null;
  size: number;
}

/** What fills chunks. `values` by slot, `escaped` the same as inside a JSON string. */
export interface Filling {
  values: readonly string[];
  escaped: readonly string[];
  digestOf(id: string): string;
  /** Takes what does not fit into the declaration. */
  store(sha256: string, object: StoredObject): void;
}

export function sha256(text: string | Buffer): string {
  return hash("sha256", text, "hex");
}

/** A value as it stands inside a JSON string. */
export function escapeJson(value: string): string {
  return JSON.stringify(value).slice(1, -1);
}

/** Chunks of the canonical JSON of a draft, neighbouring text joined. */
export function toChunks(draft: Draft): Chunk[] {
  const chunks: Chunk[] = [];
  write(draft, (chunk) => {
    const last = chunks.length - 1;
    if (typeof chunk === "string" && typeof chunks[last] === "string") chunks[last] += chunk;
    else chunks.push(chunk);
  });
  return chunks;
}

type Push = (chunk: Chunk) => void;

function write(draft: Draft, push: Push): void {
  if (draft === null || typeof draft !== "object") push(JSON.stringify(draft));
  else if (draft instanceof Template) writeText(draft.parts, push);
  else if (draft instanceof BodyTemplate) writeBody(draft.template.parts, push);
  else if (draft instanceof DigestOf) {
    push('"');
    push({ digestOf: draft.id });
    push('"');
  } else if (draft instanceof StoredBody) push(`{"object":"${draft.sha256}","size":${draft.size}}`);
  else if (Array.isArray(draft)) {
    draft.forEach((item, i) => {
      push(i === 0 ? "[" : ",");
      write(item, push);
    });
    push(draft.length === 0 ? "[]" : "]");
  } else writeObject(draft as { readonly [key: string]: Draft }, push);
}

function writeObject(object: { readonly [key: string]: Draft }, push: Push): void {
  let separator = "{";
  for (const key of Object.keys(object).sort()) {
    const value = object[key];
    if (value === undefined) continue;
    push(`${separator}${JSON.stringify(key)}:`);
    write(value, push);
    separator = ",";
  }
  push(separator === "{" ? "{}" : "}");
}

const isRef = (part: TemplatePart) => typeof part === "object" && !("slot" in part);

/** A body in which the host must fill paths stays in the declaration; of others the size decides, once they are filled. */
function writeBody(parts: readonly TemplatePart[], push: Push): void {
  if (!parts.some(isRef)) {
    push({ body: parts });
    return;
  }
  push('{"text":');
  writeText(parts, push);
  push("}");
}

/** A Text: one JSON string, or an array of strings and `{ path }` where the host fills some of it. */
function writeText(parts: readonly TemplatePart[], push: Push): void {
  if (!parts.some(isRef)) {
    push('"');
    for (const part of parts)
      push(typeof part === "string" ? escapeJson(part) : (part as { slot: number }).slot);
    push('"');
    return;
  }
  let inString = false;
  let first = true;
  const open = (text: string) => {
    push(`${first ? "" : ","}${text}`);
    first = false;
  };
  push("[");
  for (const part of parts) {
    if (typeof part === "string" || "slot" in part) {
      if (!inString) open('"');
      inString = true;
      push(typeof part === "string" ? escapeJson(part) : part.slot);
      continue;
    }
    if (inString) push('"');
    inString = false;
    open('{"path":"');
    push("ref" in part ? escapeJson(part.ref) : part.refSlot);
    push('"}');
  }
  push(inString ? '"]' : "]");
}

/** The chunks filled, as JSON text. */
export function fillChunks(chunks: readonly Chunk[], filling: Filling): string {
  let text = "";
  for (const chunk of chunks) {
    if (typeof chunk === "string") text += chunk;
    else if (typeof chunk === "number") text += filling.escaped[chunk];
    else if ("digestOf" in chunk) text += filling.digestOf(chunk.digestOf);
    else text += fillBody(chunk.body, filling);
  }
  return text;
}

/** A small body is in the declaration; a large one goes to the store, and its sha256 stands here. */
function fillBody(parts: readonly TemplatePart[], filling: Filling): string {
  let plain = "";
  for (const part of parts)
    plain += typeof part === "string" ? part : filling.values[(part as { slot: number }).slot];
  if (plain.length <= INLINE_LIMIT / 3 || Buffer.byteLength(plain) <= INLINE_LIMIT) {
    return `{"text":${JSON.stringify(plain)}}`;
  }
  const bytes = Buffer.from(plain);
  const digest = sha256(bytes);
  filling.store(digest, { oid: null, bytes, size: bytes.length });
  return `{"object":"${digest}","size":${bytes.length}}`;
}
