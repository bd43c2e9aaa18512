import { expect, test } from "vitest";
import { previewMarkdown, previewText, summary } from "../../../src/cli/preview-text.ts";
import { painter } from "../../../src/cli/table.ts";
import type { PreviewDocument } from "../../../src/composition/preview.ts";

const restart = { id: "web.server", change: "restart" as const, fields: ["command"] };
const document: PreviewDocument = {
  from: "a".repeat(40),
  to: null,
  tiers: [
    {
      tier: 0,
      modules: ["accounts"],
      builds: [],
      nodes: [{ node: "web-1", changes: [{ id: "accounts.alice", change: "add", fields: [] }] }],
    },
    {
      tier: 2,
      modules: ["web"],
      builds: [],
      nodes: ["web-1", "web-2"].map((node) => ({ node, changes: [restart] })),
    },
  ],
  guard: [{ rule: "emptied", detail: "empties db-1 (3 resources)" }],
  confirm: "Mesh-Confirm: emptied db-1",
  problems: [],
};

test("the summary counts machines once and each kind of change", () => {
  expect(summary(document)).toBe("2 machines, 1 addition, 2 restarts");
  expect(summary({ ...document, tiers: [] })).toBe("nothing changes on any machine");
});

test("machines with the same changes are shown together", () => {
  expect(previewText(document, painter(false))).toContain(
    "  web-1, web-2\n    ! restart web.server (command)",
  );
});

test("the guard's line to copy is in the text and in the markdown", () => {
  expect(previewText(document, painter(false))).toContain("  Mesh-Confirm: emptied db-1");
  expect(previewMarkdown(document)).toContain("`Mesh-Confirm: emptied db-1`");
});

test("a refused commit is told by its problems alone", () => {
  const problems = [{ file: "mesh.json", line: 2, column: 3, path: "nam", message: "unknown key" }];
  const refused = { ...document, tiers: [], guard: [], confirm: null, problems };
  expect(previewText(refused, painter(false))).toBe("mesh.json:2:3: unknown key");
  expect(previewMarkdown(refused)).toContain("**Refused: 1 problem**");
});
