// Writes schemas/*.json, docs/cli.md and the tree in docs/architecture.md. With --check: writes nothing, fails when they differ.
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const top = fileURLToPath(new URL("..", import.meta.url));
const check = process.argv.includes("--check");
const differing = [];

function mesh(...args) {
  const env = { ...process.env, NO_COLOR: "1", COLUMNS: "100" };
  return execFileSync(
    process.execPath,
    [join(process.env.MESH_DIST ?? join(top, "dist"), "mesh.js"), ...args],
    { encoding: "utf8", env },
  );
}

function put(path, text) {
  const file = join(top, path);
  const before = existsSync(file) ? readFileSync(file, "utf8") : null;
  if (before === text) return;
  if (check) differing.push(path);
  else {
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, text);
    console.log(`wrote ${path}`);
  }
}

for (const kind of ["module", "node", "group", "mesh", "declaration", "report"]) {
  put(`schemas/${kind}.json`, mesh("schema", kind));
}

/** The names under "Commands:" of a help text. */
function commandsOf(help) {
  const [, list = ""] = help.split(/^Commands:\n/m);
  return list
    .split("\n\n")[0]
    .split("\n")
    .map((line) => /^ {2}([a-z]+)/.exec(line)?.[1])
    .filter((name) => name && name !== "help");
}

function reference() {
  const whole = mesh("--help");
  const parts = [
    "# Commands\n\nWritten by `make generate` from the commands' own help.",
    `Exit codes: 0 done; 1 failed; 2 usage; 3 not converged (\`status --check\`, \`plan --wait\`) or the guard would wait (\`preview\`); 4 the controller, store or broker cannot be reached.`,
    `\`\`\`\n${whole.trim()}\n\`\`\``,
  ];
  for (const name of commandsOf(whole)) {
    const help = mesh(name, "--help");
    parts.push(`## mesh ${name}\n\n\`\`\`\n${help.trim()}\n\`\`\``);
    for (const sub of commandsOf(help)) {
      parts.push(`### mesh ${name} ${sub}\n\n\`\`\`\n${mesh(name, sub, "--help").trim()}\n\`\`\``);
    }
  }
  return `${parts.join("\n\n")}\n`;
}
put("docs/cli.md", reference());

/** Every error of the product: its code, what happens next, and its sentence with the facts as <names>. */
function errorTable() {
  const rows = new Map();
  for (const path of readdirSync(join(top, "src"), { recursive: true, encoding: "utf8" })) {
    if (!path.endsWith(".ts") || path === "errors.ts") continue;
    const text = readFileSync(join(top, "src", path), "utf8");
    for (const match of text.matchAll(/meshError\(\s*"([a-z0-9-]+)",\s*"(retry|wait|stalled)",/g)) {
      const rest = text.slice(match.index + match[0].length);
      const end = rest.search(/\)\s*\{\s*\}|\)\s*\{\n/);
      rows.set(match[1], { next: match[2], sentence: sentenceOf(rest.slice(0, end)) });
    }
  }
  return [...rows]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([code, row]) => `| \`${code}\` | ${row.next} | ${row.sentence} |`);
}

/** The text of a sentence function: each `${…}` becomes the fact that it shows, in italics. */
function sentenceOf(source) {
  const arrow = source.slice(source.indexOf("=>") + 2);
  const [at] = [...arrow.matchAll(/[`"]/g)].map((match) => match.index);
  if (at === undefined) return "";
  const quote = arrow[at];
  let text = "";
  for (let i = at + 1; i < arrow.length && arrow[i] !== quote; i++) {
    if (arrow[i] === "\\") text += arrow[++i];
    else if (arrow.startsWith("${", i)) {
      const end = endOfExpression(arrow, i + 2);
      text += `*${/\bf\.(\w+)/.exec(arrow.slice(i + 2, end))?.[1] ?? "…"}*`;
      i = end;
    } else text += arrow[i];
  }
  return text.replaceAll("|", "\\|").replaceAll("\n", " ");
}

/** Where the `}` is that ends a `${` begun before `from`. */
function endOfExpression(text, from) {
  let depth = 1;
  for (let i = from; i < text.length; i++) {
    if (text[i] === "{") depth++;
    else if (text[i] === "}" && --depth === 0) return i;
  }
  return text.length;
}

const NEXT =
  "`retry`: it is tried again soon by itself. `wait`: something outside (a broker, a person) must come first. `stalled`: nothing happens until the input changes.";
put(
  "docs/errors.md",
  `# Errors\n\nWritten by \`make generate\` from the code. An error is one line: the place, what was found, what is allowed, the remedy. The words in italics are facts of the case.\n\n${NEXT}\n\n| code | next | says |\n| --- | --- | --- |\n${errorTable().join("\n")}\n`,
);

/** Folders of src, with what the first comment of docs/architecture.md's table does not say: the files. */
function tree(folder, indent) {
  const entries = readdirSync(join(top, folder), { withFileTypes: true }).sort((a, b) =>
    a.name.localeCompare(b.name, "en"),
  );
  const files = entries
    .filter((entry) => entry.isFile() && entry.name.endsWith(".ts"))
    .map((entry) => entry.name.slice(0, -3));
  const lines = files.length > 0 ? [`${indent}${files.join(", ")}`] : [];
  for (const entry of entries.filter((one) => one.isDirectory())) {
    const inside = tree(`${folder}/${entry.name}`, `${indent}  `);
    if (inside.length > 0) lines.push(`${indent}${entry.name}/`, ...inside);
  }
  return lines;
}
const MARK = /(<!-- tree -->\n)[\s\S]*?(<!-- \/tree -->)/;
const architecture = join(top, "docs/architecture.md");
if (existsSync(architecture)) {
  const text = readFileSync(architecture, "utf8");
  put(
    "docs/architecture.md",
    text.replace(
      MARK,
      (_, open, close) => `${open}\`\`\`\nsrc/\n${tree("src", "  ").join("\n")}\n\`\`\`\n${close}`,
    ),
  );
}

if (differing.length > 0) {
  console.error(
    `verify: ${differing.join(", ")} ${differing.length === 1 ? "is" : "are"} out of date; run \`make generate\` and commit`,
  );
  process.exitCode = 1;
} else console.log(check ? "verify: generated files are up to date" : "generated files are written");
