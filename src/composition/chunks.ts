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

/** Chunks of a whole resource; `identity[i]` says whether chunk i is part of what its digest is made of. */
export interface ResourceChunks {
  chunks: readonly Chunk[];
  identity: readonly boolean[];
}

/** Gathers chunks, neighbouring text joined. */
class ChunkWriter {
  readonly chunks: Chunk[] = [];
  readonly identity: boolean[] = [];
  #text = "";
  #inIdentity = false;

  text(text: string): void {
    this.#text += text;
  }
  push(chunk: Chunk): void {
    this.flush();
    this.chunks.push(chunk);
    this.identity.push(this.#inIdentity);
  }
  flush(): void {
    if (this.#text === "") return;
    this.chunks.push(this.#text);
    this.identity.push(this.#inIdentity);
    this.#text = "";
  }
  mark(inIdentity: boolean): void {
    if (inIdentity === this.#inIdentity) return;
    this.flush();
    this.#inIdentity = inIdentity;
  }
}

type Members = { readonly [key: string]: Draft };

/** The canonical JSON of a resource in chunks: its kind's fields and those that all have. `identity` names the members that its digest is made of. */
export function toChunks(fields: Members, common: Members, identity: ReadonlySet<string>): ResourceChunks {
  const out = new ChunkWriter();
  let separator = "{";
  for (const key of [...Object.keys(fields), ...Object.keys(common)].sort()) {
    out.mark(identity.has(key));
    out.text(`${separator}"${key}":`);
    write((Object.hasOwn(common, key) ? common[key] : fields[key]) as Draft, out);
    separator = ",";
  }
  out.mark(false);
  out.text("}");
  out.flush();
  return { chunks: out.chunks, identity: out.identity };
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
  else writeObject(draft as Members, out);
}

function writeObject(object: Members, out: ChunkWriter): void {
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

/**
 * The chunks filled, as JSON text. `digest` makes the resource's own digest of its identity's text; the digests that stand in
 * the text are asked for only afterwards, so that resources may name each other.
 */
export function fillChunks(
  { chunks, identity }: ResourceChunks,
  filling: Filling,
  digest: (identity: string) => void,
): string {
  const pieces: string[] = [];
  const holes: Array<{ at: number; id: string }> = [];
  let text = "";
  let own = "";
  for (let i = 0; i < chunks.length; i++) {
    const chunk = chunks[i] as Chunk;
    if (typeof chunk === "object" && "digestOf" in chunk) {
      holes.push({ at: pieces.push(text, "") - 1, id: chunk.digestOf });
      text = "";
      continue;
    }
    const piece =
      typeof chunk === "string"
        ? chunk
        : typeof chunk === "number"
          ? (filling.escaped[chunk] as string)
          : fillBody(chunk.body, filling);
    text += piece;
    if (identity[i]) own += piece;
  }
  digest(own);
  for (const { at, id } of holes) pieces[at] = filling.digestOf(id);
  return pieces.join("") + text;
}

/** A body whose size decides where it goes: how long it is without its values, and which values it takes. */
export interface BodySize {
  fixed: number;
  slots: readonly number[];
}

export function bodySizes({ chunks }: ResourceChunks): BodySize[] {
  return chunks.flatMap((chunk) => {
    if (typeof chunk !== "object" || !("body" in chunk)) return [];
    const texts = chunk.body.filter((part) => typeof part === "string");
    const slots = chunk.body.flatMap((part) =>
      typeof part === "object" && "slot" in part ? [part.slot] : [],
    );
    return [{ fixed: texts.reduce((sum, text) => sum + text.length, 0), slots }];
  });
}

/** Whether one of them may be too large for the declaration; false is sure, and told without filling anything. */
export function mayStore(bodies: readonly BodySize[], values: readonly string[]): boolean {
  return bodies.some(
    ({ fixed, slots }) =>
      slots.reduce((sum, slot) => sum + (values[slot] as string).length, fixed) > SURELY_SMALL,
  );
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
