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

/** At most this many UTF-16 units are below the limit in UTF-8, whatever they are. */
const SURELY_SMALL = Math.floor(INLINE_LIMIT / 3);

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

/** Gathers chunks, neighbouring text joined. */
class ChunkWriter {
  readonly #chunks: Chunk[] = [];
  #text = "";

  text(text: string): void {
    this.#text += text;
  }
  push(chunk: Chunk): void {
    if (this.#text !== "") this.#chunks.push(this.#text);
    this.#text = "";
    this.#chunks.push(chunk);
  }
  done(): Chunk[] {
    if (this.#text !== "") this.#chunks.push(this.#text);
    this.#text = "";
    return this.#chunks;
  }
}

/** Chunks of the canonical JSON of a draft. */
export function toChunks(draft: Draft): Chunk[] {
  const out = new ChunkWriter();
  write(draft, out);
  return out.done();
}

/** Chunks of the canonical JSON of an object whose members were cut already. */
export function joinMembers(
  members: ReadonlyMap<string, readonly Chunk[]>,
  keys: readonly string[],
): Chunk[] {
  const out = new ChunkWriter();
  let separator = "{";
  for (const key of [...keys].sort()) {
    out.text(`${separator}"${key}":`);
    for (const chunk of members.get(key) ?? []) {
      if (typeof chunk === "string") out.text(chunk);
      else out.push(chunk);
    }
    separator = ",";
  }
  out.text("}");
  return out.done();
}

function write(draft: Draft, out: ChunkWriter): void {
  if (draft === null || typeof draft !== "object") out.text(JSON.stringify(draft));
  else if (draft instanceof Template) writeText(draft.parts, out);
  else if (Array.isArray(draft)) {
    out.text("[");
    for (let i = 0; i < draft.length; i++) {
      if (i > 0) out.text(",");
      write(draft[i], out);
    }
    out.text("]");
  } else if (draft instanceof BodyTemplate) writeBody(draft.template.parts, out);
  else if (draft instanceof DigestOf) {
    out.text('"');
    out.push({ digestOf: draft.id });
    out.text('"');
  } else if (draft instanceof StoredBody) out.text(`{"object":"${draft.sha256}","size":${draft.size}}`);
  else writeObject(draft as { readonly [key: string]: Draft }, out);
}

function writeObject(object: { readonly [key: string]: Draft }, out: ChunkWriter): void {
  let separator = "{";
  for (const key of Object.keys(object).sort()) {
    const value = object[key];
    if (value === undefined) continue;
    out.text(`${separator}${JSON.stringify(key)}:`);
    write(value, out);
    separator = ",";
  }
  out.text(separator === "{" ? "{}" : "}");
}

const isRef = (part: TemplatePart) => typeof part === "object" && !("slot" in part);

/** A body in which the host must fill paths stays in the declaration; of others the size decides, once they are filled. */
function writeBody(parts: readonly TemplatePart[], out: ChunkWriter): void {
  const [only] = parts;
  const small = parts.length === 0 || (typeof only === "string" && only.length <= SURELY_SMALL);
  if (!(parts.length <= 1 && small) && !parts.some(isRef)) {
    out.push({ body: parts });
    return;
  }
  out.text('{"text":');
  writeText(parts, out);
  out.text("}");
}

/** A Text: one JSON string, or an array of strings and `{ path }` where the host fills some of it. */
function writeText(parts: readonly TemplatePart[], out: ChunkWriter): void {
  const piece = (part: string | { slot: number }) =>
    typeof part === "string" ? out.text(escapeJson(part)) : out.push(part.slot);
  if (!parts.some(isRef)) {
    out.text('"');
    for (const part of parts) piece(part as string | { slot: number });
    out.text('"');
    return;
  }
  let inString = false;
  parts.forEach((part, i) => {
    const starts = i === 0 ? "[" : ",";
    if (typeof part === "string" || "slot" in part) {
      if (!inString) out.text(`${starts}"`);
      inString = true;
      piece(part);
      return;
    }
    out.text(`${inString ? '"' : ""}${starts}{"path":"`);
    inString = false;
    if ("ref" in part) out.text(escapeJson(part.ref));
    else out.push(part.refSlot);
    out.text('"}');
  });
  out.text(inString ? '"]' : "]");
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
  if (plain.length <= SURELY_SMALL || Buffer.byteLength(plain) <= INLINE_LIMIT) {
    return `{"text":${JSON.stringify(plain)}}`;
  }
  const bytes = Buffer.from(plain);
  const digest = sha256(bytes);
  filling.store(digest, { oid: null, bytes, size: bytes.length });
  return `{"object":"${digest}","size":${bytes.length}}`;
}
