import {
  createScanner,
  findNodeAtLocation,
  getNodePath,
  type Node,
  type ParseError,
  parseTree,
  printParseErrorCode,
} from "jsonc-parser";

export type JsonPath = ReadonlyArray<string | number>;

/** A problem of one file, before its place in the catalogue is known. */
export interface FileProblem {
  line: number;
  column: number;
  path: string;
  message: string;
}

/**
 * One JSON file with comments. `text` is without the byte order mark and is what jsonc-parser's `modify` takes.
 * `value` is undefined when the text is not JSON. Its objects may have a prototype: ask for own keys only.
 */
export interface Document {
  text: string;
  value: unknown;
  problems: FileProblem[];
  /** A problem at a JSON path: at its value, or at its key. Where the path does not exist, at the nearest part that does. */
  problem(path: JsonPath, message: string, at?: "key" | "value"): FileProblem;
}

export const MAX_BYTES = 4 * 1024 * 1024;
export const MAX_DEPTH = 64;

/** jsonc-parser's SyntaxKind, which is a const enum that single-file compilers cannot read. */
const TOKEN = { openBrace: 1, closeBrace: 2, openBracket: 3, closeBracket: 4, end: 17 } as const;

const SYNTAX: Record<string, string> = {
  InvalidSymbol: "unknown word; strings need double quotes",
  InvalidNumberFormat: "not a number that JSON has",
  PropertyNameExpected: "a key in double quotes was expected",
  ValueExpected: "a value was expected",
  ColonExpected: '":" was expected',
  CommaExpected: '"," was expected',
  CloseBraceExpected: '"}" was expected',
  CloseBracketExpected: '"]" was expected',
  EndOfFileExpected: "nothing more was expected after the value",
  UnexpectedEndOfComment: "the comment is not closed",
  UnexpectedEndOfString: "the string is not closed",
  UnexpectedEndOfNumber: "the number is not finished",
  InvalidUnicode: "the \\u escape needs four hexadecimal digits",
  InvalidEscapeCharacter: "unknown escape in a string",
  InvalidCharacter: "a control character in a string must be escaped",
};

/** Reads the bytes of one JSON file. Never throws: whatever is wrong is among `problems`, with its place. */
export function parseDocument(bytes: Buffer): Document {
  const decoded = decode(bytes);
  if ("problem" in decoded) return failed("", [decoded.problem]);
  const { text } = decoded;
  const deep = tooDeep(text);
  if (deep !== null)
    return failed(text, [
      { ...place(text, deep), path: "", message: `nested deeper than ${MAX_DEPTH} levels` },
    ]);
  const plain = plainJson(text);
  if (plain !== undefined) return document(text, plain, undefined, []);
  const errors: ParseError[] = [];
  const root = parseTree(text, errors, { allowTrailingComma: true, disallowComments: false });
  if (errors.length > 0 || !root) return failed(text, syntaxProblems(text, errors));
  const problems: FileProblem[] = [];
  const value = toValue(root, text, problems);
  return document(text, value, root, problems);
}

/**
 * The value of a text that is plain JSON and has nothing that needs a closer look: most files, and a tenth of the time.
 * Duplicate keys show as more colons in the text than keys in the value; zero bytes and halves of pairs need an escape.
 */
function plainJson(text: string): unknown {
  if (text.includes("\\u") || text.includes("__proto__")) return undefined;
  try {
    const value: unknown = JSON.parse(text);
    return countKeys(value) === countColons(text) ? value : undefined;
  } catch {
    return undefined;
  }
}

function countKeys(value: unknown): number {
  if (typeof value !== "object" || value === null) return 0;
  const inner = Object.values(value);
  let count = Array.isArray(value) ? 0 : inner.length;
  for (const one of inner) count += countKeys(one);
  return count;
}

/** Colons outside strings, of a text that is JSON. */
function countColons(text: string): number {
  let count = 0;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code === 0x3a) count++;
    if (code !== 0x22) continue;
    for (i++; text.charCodeAt(i) !== 0x22; i++) if (text.charCodeAt(i) === 0x5c) i++;
  }
  return count;
}

/** The place of a JSON path in a text that was valid when it was read; line 1 where the text is not JSON. */
export function locate(
  text: string,
  path: JsonPath,
  at: "key" | "value" = "value",
): { line: number; column: number } {
  const root = parseTree(text, [], { allowTrailingComma: true });
  return root ? placeOf(text, root, path, at) : { line: 1, column: 1 };
}

/** `resources[2].env.PORT`; a key that is no plain word is written `["a b"]`. */
export function formatPath(path: JsonPath): string {
  return path
    .map((part, i) => {
      if (typeof part === "number") return `[${part}]`;
      if (/^[A-Za-z_$][\w$-]*$/.test(part)) return i === 0 ? part : `.${part}`;
      return `[${JSON.stringify(part)}]`;
    })
    .join("");
}

function document(text: string, value: unknown, known: Node | undefined, problems: FileProblem[]): Document {
  let root = known;
  const problem = (path: JsonPath, message: string, at: "key" | "value" = "value") => {
    root ??= parseTree(text, [], { allowTrailingComma: true });
    const where = root ? placeOf(text, root, path, at) : { line: 1, column: 1 };
    return { ...where, path: formatPath(path), message };
  };
  return { text, value, problems, problem };
}

function failed(text: string, problems: FileProblem[]): Document {
  return document(text, undefined, undefined, problems);
}

function decode(bytes: Buffer): { text: string } | { problem: FileProblem } {
  const refuse = (message: string, at = { line: 1, column: 1 }) => ({
    problem: { ...at, path: "", message },
  });
  if (bytes.length > MAX_BYTES)
    return refuse(`is ${bytes.length} bytes; at most ${MAX_BYTES} are allowed in one file`);
  const [a, b] = bytes;
  if ((a === 0xff && b === 0xfe) || (a === 0xfe && b === 0xff) || bytes.subarray(0, 4).includes(0))
    return refuse("is UTF-16; save it as UTF-8");
  const body = a === 0xef && b === 0xbb && bytes[2] === 0xbf ? bytes.subarray(3) : bytes;
  const text = body.toString("utf8");
  const again = Buffer.from(text, "utf8");
  if (again.equals(body)) return { text };
  let first = 0;
  while (again[first] === body[first]) first++;
  const before = body.toString("utf8", 0, first);
  return refuse("is not valid UTF-8 here; save it as UTF-8", place(before, before.length));
}

/** The offset at which nesting goes beyond MAX_DEPTH, or null. The parser recurses, this does not. */
function tooDeep(text: string): number | null {
  if ((text.match(/[[{]/g)?.length ?? 0) <= MAX_DEPTH) return null;
  const scanner = createScanner(text, true);
  let depth = 0;
  for (let token = scanner.scan(); token !== TOKEN.end; token = scanner.scan()) {
    if (token === TOKEN.openBrace || token === TOKEN.openBracket) depth++;
    if (token === TOKEN.closeBrace || token === TOKEN.closeBracket) depth--;
    if (depth > MAX_DEPTH) return scanner.getTokenOffset();
  }
  return null;
}

function syntaxProblems(text: string, errors: ParseError[]): FileProblem[] {
  if (text.trim() === "")
    return [{ line: 1, column: 1, path: "", message: "is empty; a JSON object was expected" }];
  // What follows the first few errors is mostly their echo.
  return errors.slice(0, 5).map((e) => {
    const found = text.slice(e.offset, e.offset + Math.max(1, Math.min(e.length, 20)));
    const shown = found.trim() === "" ? "" : ` (found ${JSON.stringify(found)})`;
    return {
      ...place(text, e.offset),
      path: "",
      message: `is not JSON: ${SYNTAX[printParseErrorCode(e.error)] ?? "syntax error"}${shown}`,
    };
  });
}

function toValue(node: Node, text: string, problems: FileProblem[]): unknown {
  if (node.type === "array") return (node.children ?? []).map((child) => toValue(child, text, problems));
  if (node.type === "object") return toObject(node, text, problems);
  if (typeof node.value === "string") checkText(node, text, problems);
  return node.value;
}

function toObject(node: Node, text: string, problems: FileProblem[]): unknown {
  const object: Record<string, unknown> = Object.create(null);
  const seen = new Map<string, number>();
  for (const property of node.children ?? []) {
    const [keyNode, valueNode] = property.children ?? [];
    if (!keyNode || !valueNode) continue;
    const key = keyNode.value as string;
    const first = seen.get(key);
    if (key === "__proto__") {
      problems.push(problemAt(keyNode, text, 'the key "__proto__" is not allowed'));
      continue;
    }
    if (first === undefined) seen.set(key, keyNode.offset);
    else
      problems.push(
        problemAt(
          keyNode,
          text,
          `duplicate key ${JSON.stringify(key)}, first on line ${place(text, first).line}`,
        ),
      );
    checkText(keyNode, text, problems);
    object[key] = toValue(valueNode, text, problems);
  }
  return object;
}

/** A zero byte or half a surrogate pair can be neither an argument nor a row of the inventory. */
function checkText(node: Node, text: string, problems: FileProblem[]): void {
  const value = node.value as string;
  if (value.includes("\u0000")) problems.push(problemAt(node, text, "must not hold a zero byte (\\u0000)"));
  if (/[\ud800-\udfff]/.test(value) && !isWellFormed(value))
    problems.push(problemAt(node, text, "holds half of a surrogate pair (\\ud800 to \\udfff)"));
}

/** Of a key, the path is that of its value. */
function problemAt(node: Node, text: string, message: string): FileProblem {
  return { ...place(text, node.offset), path: formatPath(getNodePath(node)), message };
}

function isWellFormed(value: string): boolean {
  return !/[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/.test(value);
}

function placeOf(
  text: string,
  root: Node,
  path: JsonPath,
  at: "key" | "value",
): { line: number; column: number } {
  for (let length = path.length; length >= 0; length--) {
    const node = findNodeAtLocation(root, path.slice(0, length) as Array<string | number>);
    if (!node) continue;
    const key = node.parent?.type === "property" ? node.parent.children?.[0] : undefined;
    const shown = at === "key" && length === path.length && key ? key : node;
    return place(text, shown.offset);
  }
  return { line: 1, column: 1 };
}

function place(text: string, offset: number): { line: number; column: number } {
  let line = 1;
  let start = 0;
  for (let at = text.indexOf("\n"); at >= 0 && at < offset; at = text.indexOf("\n", at + 1)) {
    line++;
    start = at + 1;
  }
  return { line, column: offset - start + 1 };
}
