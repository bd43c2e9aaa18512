import type { Change } from "../composition/diff.ts";
import type { PreviewDocument } from "../composition/preview.ts";
import { type Colour, type Paint, short } from "./table.ts";

const SIGNS: Record<Change["change"], [sign: string, colour: Colour]> = {
  add: ["+", "green"],
  update: ["~", "yellow"],
  remove: ["-", "red"],
  restart: ["!", "yellow"],
  reload: ["~", "blue"],
  handover: ["!", "blue"],
};
const WORDS: Record<Change["change"], [one: string, many: string]> = {
  add: ["addition", "additions"],
  update: ["update", "updates"],
  remove: ["removal", "removals"],
  restart: ["restart", "restarts"],
  reload: ["reload", "reloads"],
  handover: ["handover", "handovers"],
};

export function previewText(doc: PreviewDocument, paint: Paint): string {
  if (doc.problems.length > 0) {
    return doc.problems.map((p) => `${p.file}:${p.line}:${p.column}: ${p.message}`).join("\n");
  }
  const lines = [`from ${short(doc.from)} to ${doc.to ? short(doc.to) : "the work tree"}: ${summary(doc)}`];
  for (const tier of doc.tiers) {
    if (tier.nodes.length === 0) continue;
    lines.push("", `${paint("bold", `tier ${tier.tier}`)}  ${tier.modules.join(", ")}`);
    for (const { nodes, changes } of alike(tier.nodes)) {
      lines.push(`  ${nodes.join(", ")}`);
      for (const change of changes) {
        const [sign, colour] = SIGNS[change.change];
        const fields = change.fields.length > 0 ? ` (${change.fields.join(", ")})` : "";
        lines.push(`    ${paint(colour, sign)} ${change.change} ${change.id}${fields}`);
      }
    }
  }
  if (doc.guard.length > 0) {
    lines.push(
      "",
      paint("red", "the guard would wait:"),
      ...doc.guard.map((hit) => `  ${hit.rule}: ${hit.detail}`),
    );
    lines.push(
      "to let it go, end the commit's message with this line, or use `mesh plans confirm`:",
      `  ${doc.confirm}`,
    );
  }
  return lines.join("\n");
}

/** For a pull request: the sentence first, the guard loud, the long list folded. */
export function previewMarkdown(doc: PreviewDocument): string {
  if (doc.problems.length > 0) {
    const rows = doc.problems.map((p) => `- \`${p.file}:${p.line}:${p.column}\` ${p.message}`);
    return [
      "### mesh preview",
      "",
      `**Refused: ${count(doc.problems.length, ["problem", "problems"])}**`,
      "",
      ...rows,
    ].join("\n");
  }
  const lines = ["### mesh preview", "", `**${capital(summary(doc))}**`];
  if (doc.guard.length > 0) {
    lines.push("", "> [!WARNING]", "> The guard would wait:");
    for (const hit of doc.guard) lines.push(`> - ${hit.rule}: ${hit.detail}`);
    lines.push(">", `> To let it go, end the merge commit's message with \`${doc.confirm}\``);
  }
  for (const tier of doc.tiers) {
    if (tier.nodes.length === 0) continue;
    const title = `Tier ${tier.tier}: ${count(tier.nodes.length, ["machine", "machines"])}`;
    lines.push(
      "",
      `<details><summary>${title}</summary>`,
      "",
      "| machines | change | resource | fields |",
      "| --- | --- | --- | --- |",
    );
    for (const { nodes, changes } of alike(tier.nodes)) {
      for (const one of changes) {
        lines.push(`| ${nodes.join(", ")} | ${one.change} | \`${one.id}\` | ${one.fields.join(", ")} |`);
      }
    }
    lines.push("", "</details>");
  }
  return lines.join("\n");
}

/** "12 machines, 3 restarts, 1 addition". */
export function summary(doc: PreviewDocument): string {
  const touched = new Set(doc.tiers.flatMap((tier) => tier.nodes.map((one) => one.node)));
  if (touched.size === 0) return "nothing changes on any machine";
  const counts = new Map<Change["change"], number>();
  for (const change of doc.tiers.flatMap((tier) => tier.nodes.flatMap((one) => one.changes))) {
    counts.set(change.change, (counts.get(change.change) ?? 0) + 1);
  }
  const order = Object.keys(WORDS) as Array<Change["change"]>;
  const parts = order.filter((kind) => counts.has(kind)).map((kind) => count(counts.get(kind)!, WORDS[kind]));
  return [count(touched.size, ["machine", "machines"]), ...parts].join(", ");
}

/** Nodes with the same changes are shown together: a fleet is not a list of one thing. */
function alike(
  nodes: PreviewDocument["tiers"][number]["nodes"],
): Array<{ nodes: string[]; changes: Change[] }> {
  const groups = new Map<string, { nodes: string[]; changes: Change[] }>();
  for (const { node, changes } of nodes) {
    const key = JSON.stringify(changes);
    const group = groups.get(key);
    if (group) group.nodes.push(node);
    else groups.set(key, { nodes: [node], changes });
  }
  return [...groups.values()];
}

function count(number: number, [one, many]: [string, string]): string {
  return `${number} ${number === 1 ? one : many}`;
}

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
