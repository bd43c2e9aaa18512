import { isUtf8 } from "node:buffer";
import { BodyTemplate, type Draft, StoredBody, Template } from "../draft.ts";
import { type CompileScope, type Kind, RANK } from "../kind.ts";
import { DeclaredFile, FileManifest } from "./schema.ts";

/** Bodies above this many bytes travel through the object store, once for all nodes. */
export const INLINE_LIMIT = 8 * 1024;

export const fileKind = {
  type: "file",
  manifest: FileManifest,
  declared: DeclaredFile,
  ids: (m) => [{ id: m.id, path: m.path }],
  compile: (m, scope) => {
    scope.plain(m.path, ["path"]);
    return [
      {
        id: m.id,
        fields: {
          path: m.path,
          body: bodyOf(m, scope),
          owner: m.owner ?? null,
          group: m.group ?? null,
          mode: m.mode,
        },
        requires: m.requires,
        rank: RANK.file,
        claims: [{ space: "path", name: m.path }],
      },
    ];
  },
} satisfies Kind<"file", FileManifest>;

function bodyOf(m: FileManifest, scope: CompileScope): Draft {
  const given = (["content", "source", "secret"] as const).filter((key) => m[key] !== undefined);
  if (given.length !== 1) {
    const found = given.length === 0 ? "none" : given.join(" and ");
    scope.problem([], `found ${found} of content, source, secret; a file has exactly one of them`);
    return { text: "" };
  }
  if (m.source !== undefined) return sourceBody(m.source, m.template ?? false, scope);
  if (m.content === undefined) return { text: "" };
  // A list of lines is a text file: every line ends with a newline.
  const text = typeof m.content === "string" ? m.content : m.content.map((line) => `${line}\n`).join("");
  return new BodyTemplate((m.template ?? true) ? scope.text(text, ["content"]) : new Template([text]));
}

function sourceBody(path: string, template: boolean, scope: CompileScope): Draft {
  const source = scope.source(path, ["source"]);
  if (!source) return { text: "" };
  if (template) {
    if (!source.bytes || !isUtf8(source.bytes) || source.bytes.includes(0)) {
      scope.problem(["template"], `${path} is not UTF-8 text; a template must be (or set "template": false)`);
      return { text: "" };
    }
    return new BodyTemplate(scope.text(source.bytes.toString("utf8"), ["source"]));
  }
  if (source.size > INLINE_LIMIT || !source.bytes) return new StoredBody(source);
  // A zero byte is valid UTF-8, but not every store of text takes it.
  if (!isUtf8(source.bytes) || source.bytes.includes(0)) return { base64: source.bytes.toString("base64") };
  return { text: source.bytes.toString("utf8") };
}
