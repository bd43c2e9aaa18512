import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { eventually } from "../support/eventually.ts";
import { aMesh, isAlive, type Mesh } from "../support/mesh.ts";
import { type Files, meshFile } from "../support/mesh-catalogue.ts";
import { MESH, shell, startMesh } from "../support/mesh-program.ts";

vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 });

const MODULES = 300;
const LOOP = "i=0; while :; do i=$((i+1)); echo line $i; sleep 0.2; done";

function catalogue(): Files {
  const names = Array.from({ length: MODULES }, (_, i) => `module-${i}`);
  const files = names.map((name) => [
    `modules/${name}/module.json`,
    { name, resources: [{ id: "file", type: "file", path: `/etc/many/${name}`, content: `${name}\n` }] },
  ]);
  return {
    "mesh.json": meshFile(),
    "groups/all.json": { modules: names },
    "nodes/talker.json": { address: "127.0.0.1", modules: ["talker"] },
    "nodes/silent.json": { address: "127.0.0.2" },
    "modules/talker/module.json": {
      name: "talker",
      resources: [{ id: "talk", type: "process", name: "talker", command: ["sh", "-c", LOOP] }],
    },
    ...Object.fromEntries(files),
  };
}

let mesh: Mesh;
beforeAll(async () => {
  mesh = await aMesh({ catalogue: catalogue() });
  await mesh.converged();
});
afterAll(() => mesh?.close());

const run = (line: string) => shell(line, { cwd: mesh.top, env: { MESH_CONTEXT: mesh.context } });

describe("CLI-1: a catalogue of 300 modules", () => {
  // When a node was last heard is another moment each time.
  const compare = (command: string) =>
    `timeless() { sed -E 's/"seenAt": "[^"]*"/T/g' "$1"; }; mesh ${command} >file 2>file.err; a=$?; ` +
    `mesh ${command} 2>pipe.err | cat >pipe; b=\${PIPESTATUS[0]}; cmp file.err pipe.err; ` +
    `cmp <(timeless file) <(timeless pipe) && [ "$(wc -c <file)" = "$(wc -c <pipe)" ] && echo "same $a $b"; cat file`;

  test.each([
    ["node talker --json", 0],
    ["node talker --declaration", 0],
    ["plan 1 --json", 0],
    ["status --json", 0],
    ["check catalogue --json", 0],
    ["node nobody --json", 1],
  ])(
    "`mesh %s` writes the same bytes and exits the same into a file and into a pipe",
    async (command, exit) => {
      const { stdout } = await run(compare(command));
      const [verdict, ...document] = stdout.split("\n");
      expect(verdict).toBe(`same ${exit} ${exit}`);
      const text = document.join("\n");
      if (exit === 0) JSON.parse(text);
      // More than a pipe holds.
      if (command.includes("--declaration")) expect(text.length).toBeGreaterThan(65_536);
    },
  );
});

describe("CLI-4: following commands whose reader leaves", () => {
  test.each([
    ["mesh logs talker talker.talk -f | head -1", "line "],
    ["mesh logs talker talker.talk -f --json | head -1", "{"],
    ["mesh events -f --json | true", ""],
    ["mesh status --watch --json | head -c 1", "{"],
    ["mesh status 2>&1 | true", ""],
    ["mesh plan latest --watch --json | head -c 1", "{"],
  ])("`%s` ends at once and quietly", async (line, first) => {
    const { stdout, stderr, code } = await run(
      `timeout 20 bash -c '${line.replace(/mesh/, "$MESH")}'`.replace("$MESH", meshLine()),
    );
    expect(code).toBe(0);
    expect(stderr).toBe("");
    expect(stdout.startsWith(first)).toBe(true);
  });

  test("a closed terminal ends `logs -f`", async () => {
    const child = startMesh(["logs", "talker", "talker.talk", "-f"], {
      cwd: mesh.top,
      env: { MESH_CONTEXT: mesh.context },
    });
    let said = "";
    child.stdout?.on("data", (chunk) => {
      said += chunk;
    });
    await eventually(() => said.includes("line "));
    child.kill("SIGHUP");
    await eventually(() => !isAlive(child.pid as number), { within: 5_000 });
  });
});

function meshLine(): string {
  return `"${process.execPath}" "${MESH}"`;
}
