import { mkdir, readdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { TargetExists } from "./errors.ts";

const FILES: Record<string, string> = {
  "mesh.json": `{
  // Settings of the whole mesh. Every key is optional.
  "name": "mesh"
}
`,
  "nodes/first.json": `{
  "address": "127.0.0.11",
  "labels": { "role": "first" }
}
`,
  "groups/everywhere.json": `{
  // An empty "match" is every node.
  "match": {},
  "modules": ["motd"]
}
`,
  "modules/motd/module.json": `{
  "name": "motd",
  "description": "What a person reads at login",
  "tier": 0,
  "settings": { "greeting": "Welcome" },
  "resources": [
    {
      "id": "motd", "type": "file", "path": "/etc/motd",
      "content": ["\${setting:greeting} to \${node:name}.", ""]
    }
  ]
}
`,
};

/**
 * Writes a catalogue of one node and one module into a new or empty folder.
 * @returns the files, relative to the folder
 * @throws TargetExists when the folder holds anything
 */
export async function writeNewCatalogue(dir: string): Promise<string[]> {
  const there = await readdir(dir).catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return [];
    if (error.code === "ENOTDIR") throw new TargetExists({ dir });
    throw error;
  });
  // An empty clone is a good place too.
  if (there.some((entry) => entry !== ".git")) throw new TargetExists({ dir });
  for (const [path, text] of Object.entries(FILES)) {
    const file = join(dir, path);
    await mkdir(dirname(file), { recursive: true });
    await writeFile(file, text, { flag: "wx" });
  }
  return Object.keys(FILES);
}
