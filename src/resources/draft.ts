/**
 * Text cut at its placeholders: literal text, a slot that the controller fills (by index into the module's slots), a declared
 * path that the host maps (`ref`), or such a path of another module (`refSlot`). Kept apart so that nothing is filled twice.
 */
export type TemplatePart = string | { slot: number } | { ref: string } | { refSlot: number };

export class Template {
  readonly parts: readonly TemplatePart[];
  constructor(parts: readonly TemplatePart[]) {
    this.parts = parts;
  }
}

/** A file's body whose size decides where it goes: in the declaration, or (more than 8 KiB) in the object store. */
export class BodyTemplate {
  readonly template: Template;
  constructor(template: Template) {
    this.template = template;
  }
}

/** Bytes that are not in the declaration: fetched by `oid` when published, unless held. */
export class StoredBody {
  readonly sha256: string;
  readonly size: number;
  readonly oid: string | null;
  readonly bytes: Buffer | null;
  constructor(at: { sha256: string; size: number; oid: string | null; bytes: Buffer | null }) {
    this.sha256 = at.sha256;
    this.size = at.size;
    this.oid = at.oid;
    this.bytes = at.bytes;
  }
}

/** Stands for the digest of another resource, by full id. */
export class DigestOf {
  readonly id: string;
  constructor(id: string) {
    this.id = id;
  }
}

/** A value of a declared field before its placeholders are filled. */
export type Draft =
  | string
  | number
  | boolean
  | null
  | Template
  | BodyTemplate
  | StoredBody
  | DigestOf
  | readonly Draft[]
  | { readonly [key: string]: Draft };
