import { Template, type TemplatePart } from "../resources/draft.ts";
import { knownNames } from "./nearest.ts";

/**
 * A value that the controller fills in. `host` is the node's address where it stands before a port or in a URL (IPv6 in
 * brackets); `path` the declared path of another module's resource, by full id.
 */
export interface Slot {
  kind: "setting" | "port" | "seat" | "node" | "address" | "host" | "path";
  name: string;
}

/** What a module's placeholders may name, and where its slots are gathered. */
export interface Names {
  module: string;
  settings: ReadonlySet<string>;
  ports: ReadonlySet<string>;
  /** Declared paths of the module's files and directories, by id. */
  paths: ReadonlyMap<string, string>;
  state: string | null;
  slot(slot: Slot): number;
}

const PLACEHOLDER = /\$\$\{|\$\{(?:(seat|port|setting|node|module|path|secret|bundle):([^}\n]*)|state)\}/g;

/**
 * Cuts a text at its placeholders. Nothing that is filled in later is ever read as a placeholder again, since only this
 * text is looked at. `$${` is a literal `${`; any other `${…}` stays as it is. Wrong names are told to `problem`.
 */
export function parseText(text: string, names: Names, problem: (message: string) => void): Template {
  if (!text.includes("${")) return new Template(text === "" ? [] : [text]);
  const parts: TemplatePart[] = [];
  let at = 0;
  const literal = (piece: string) => {
    if (piece === "") return;
    const last = parts.length - 1;
    if (typeof parts[last] === "string") parts[last] += piece;
    else parts.push(piece);
  };
  for (const match of text.matchAll(PLACEHOLDER)) {
    literal(text.slice(at, match.index));
    at = match.index + match[0].length;
    if (match[0] === "$${") {
      literal("${");
      continue;
    }
    const around = { before: text.slice(0, match.index), after: text.slice(at) };
    const part = fill(match[0], match[1] ?? "state", match[2] ?? "", names, around);
    if (typeof part === "object" && "wrong" in part) problem(part.wrong);
    else if (typeof part === "string") literal(part);
    else parts.push(part);
  }
  literal(text.slice(at));
  return new Template(parts);
}

/** Whether a text has one of the known placeholders (for fields in which none is filled). */
export function hasPlaceholder(text: string): string | null {
  for (const match of text.matchAll(PLACEHOLDER)) if (match[0] !== "$${") return match[0];
  return null;
}

type Around = { before: string; after: string };

function fill(
  whole: string,
  prefix: string,
  name: string,
  names: Names,
  around: Around,
): TemplatePart | { wrong: string } {
  const unknown = (what: string, known: Iterable<string>) => ({
    wrong: `${whole}: unknown ${what}; ${knownNames(name, known)} (write $\${ for a literal \${)`,
  });
  switch (prefix) {
    case "setting":
    case "port": {
      const known = prefix === "port" ? names.ports : names.settings;
      return known.has(name)
        ? { slot: names.slot({ kind: prefix, name }) }
        : unknown(`${prefix} of module ${names.module}`, known);
    }
    case "seat":
      return { slot: names.slot({ kind: "seat", name }) };
    case "node":
      if (name === "name") return { slot: names.slot({ kind: "node", name }) };
      if (name === "address") return { slot: names.slot({ kind: addressKind(around), name }) };
      return unknown("value of a node", ["name", "address"]);
    case "module":
      return name === "name" ? names.module : unknown("value of a module", ["name"]);
    case "state":
      return names.state === null
        ? {
            wrong: `${whole}: module ${names.module} has no state; declare "state", or write $\${ for a literal \${`,
          }
        : { ref: names.state };
    case "path":
      return (
        pathPart(name, names) ?? unknown(`file or directory of module ${names.module}`, names.paths.keys())
      );
    default:
      return { wrong: `${whole}: ${prefix}s are not there yet` };
  }
}

function pathPart(name: string, names: Names): TemplatePart | null {
  const dot = name.indexOf(".");
  const own = dot < 0 ? name : name.slice(0, dot) === names.module ? name.slice(dot + 1) : null;
  if (own === null) return { refSlot: names.slot({ kind: "path", name }) };
  const path = names.paths.get(own);
  return path === undefined ? null : { ref: path };
}

function addressKind({ before, after }: Around): "address" | "host" {
  if (before.endsWith("[")) return "address";
  return /^:(\d|\$\{)/.test(after) || before.endsWith("://") ? "host" : "address";
}
