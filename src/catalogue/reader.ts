import { NAME, NODE_NAME, NODE_NAME_MOST } from "../resources/values.ts";
import { breather } from "./breather.ts";
import type { Catalogue, CatalogueResult, Problem } from "./catalogue.ts";
import { CrossChecks } from "./cross.ts";
import { type FilesKind, type FilesStage, readFiles } from "./folder-of-files.ts";
import { type ModulesStage, readModules } from "./modules.ts";
import { type Entry, type Objects, unsupported } from "./objects.ts";
import { locate } from "./parse.ts";
import { sorted } from "./problems.ts";
import type { GroupFile } from "./schema/group.ts";
import type { MeshFile } from "./schema/mesh.ts";
import type { NodeFile } from "./schema/node.ts";
import { defaultMesh, type ReadFile, readGroupFile, readMeshFile, readNodeFile } from "./validate.ts";

/** The folders and the file at the top that are the catalogue; everything else there is nobody's business. */
export const TOP = ["mesh.json", "groups", "nodes", "modules", "secrets"] as const;

const NODES: FilesKind<NodeFile> = {
  folder: "nodes",
  what: "node",
  valid: (name) => name.length <= NODE_NAME_MOST && NODE_NAME.test(name),
  rule: `must be lower-case letters, digits and inner hyphens (at most 63), such parts joined by dots, at most ${NODE_NAME_MOST} in all`,
  read: readNodeFile,
};
const GROUPS: FilesKind<GroupFile> = {
  folder: "groups",
  what: "group",
  valid: (name) => NAME.test(name),
  rule: "must be lower-case letters, digits and inner hyphens, at most 63 characters",
  read: readGroupFile,
};

interface MeshStage {
  oid: string;
  file: string;
  text: string;
  raw: unknown;
  value: MeshFile | null;
  problems: Problem[];
}

/** Everything that one root tree holds. */
interface Stage {
  tree: string;
  mesh: MeshStage;
  nodes: FilesStage<NodeFile>;
  groups: FilesStage<GroupFile>;
  modules: ModulesStage;
  problems: Problem[];
}

/**
 * Reads root trees, one after the other, each at the cost of what differs from the one before it and from the last good one.
 * What did not change is the same object in the new catalogue.
 */
export class TreeReader {
  readonly #objects: Objects;
  readonly #cross = new CrossChecks();
  #last: Stage | null = null;
  #good: Stage | null = null;
  #queue: Promise<unknown> = Promise.resolve();

  constructor(objects: Objects) {
    this.#objects = objects;
  }

  /** Reads one at a time, in the order of asking. Throws when an object is missing; problems of the content are in the result. */
  read(tree: string, about: { commit: string | null; subject: string }): Promise<CatalogueResult> {
    const result = this.#queue.then(() => this.#read(tree, about));
    this.#queue = result.catch(() => {});
    return result;
  }

  async #read(tree: string, about: { commit: string | null; subject: string }): Promise<CatalogueResult> {
    const earlier = [...new Set([this.#last, this.#good])].filter((s) => s !== null);
    const stage = earlier.find((s) => s.tree === tree) ?? (await this.#stage(tree, earlier));
    this.#last = stage;
    const { mesh, groups, nodes, modules } = stage;
    const catalogue: Catalogue = {
      ...about,
      mesh: mesh.value ?? defaultMesh(),
      groups: groups.values,
      nodes: nodes.values,
      modules: modules.values,
      locate: (file, path) => locate(textOf(stage, file), path),
    };
    if (stage.problems.length > 0 || mesh.value === null)
      return { ok: false, problems: stage.problems, ...about, sound: catalogue, seats: seatsOf(modules) };
    this.#good = stage;
    return { ok: true, catalogue };
  }

  async #stage(tree: string, earlier: Stage[]): Promise<Stage> {
    const objects = this.#objects;
    const breathe = breather();
    const top = new Map((await objects.readTree(tree)).map((entry) => [entry.name, entry]));
    const { problems, folder } = layout(top);
    const mesh = await this.#mesh(top.get("mesh.json"), earlier);
    const groups = await readFiles(
      objects,
      GROUPS,
      folder("groups"),
      earlier.map((s) => s.groups),
      breathe,
    );
    const nodes = await readFiles(
      objects,
      NODES,
      folder("nodes"),
      earlier.map((s) => s.nodes),
      breathe,
    );
    const modules = await readModules(
      objects,
      folder("modules"),
      earlier.map((s) => s.modules),
      breathe,
    );
    problems.push(...(await this.#secrets(folder("secrets"))));
    for (const part of [mesh, groups, nodes, modules]) problems.push(...part.problems);
    const known = top.get("modules")?.kind === "folder" || !top.has("modules");
    if (known)
      problems.push(
        ...this.#cross.check({
          faces: modules.faces,
          modules: modules.entries,
          mesh: mesh.raw === undefined ? null : mesh,
          files: [groups.entries, nodes.entries],
        }),
      );
    return { tree, mesh, groups, nodes, modules, problems: sorted(problems) };
  }

  async #mesh(entry: Entry | undefined, earlier: Stage[]): Promise<MeshStage> {
    const file = "mesh.json";
    const oid = entry?.kind === "file" ? entry.oid : "";
    const same = earlier.find((s) => s.mesh.oid === oid);
    if (same) return same.mesh;
    const read: ReadFile<MeshFile> =
      oid === ""
        ? { text: "{}", raw: undefined, value: defaultMesh(), problems: [] }
        : readMeshFile(await this.#objects.readBlob(oid), "mesh");
    const { text, raw, value } = read;
    return { oid, file, text, raw, value, problems: read.problems.map((p) => ({ file, ...p })) };
  }

  async #secrets(tree: string | null): Promise<Problem[]> {
    const entries = tree === null ? [] : await this.#objects.readTree(tree);
    return entries.flatMap((entry) => {
      const why =
        unsupported(entry) ??
        (entry.name.startsWith(".") ? null : "secrets are not there yet in this release");
      return why === null ? [] : [whole(`secrets/${entry.name}`, why)];
    });
  }
}

function layout(top: ReadonlyMap<string, Entry>) {
  const problems: Problem[] = [];
  if (!TOP.some((name) => top.has(name)))
    problems.push(
      whole(
        "mesh.json",
        "nothing of a catalogue is here (mesh.json, groups/, nodes/, modules/); `mesh init DIR` makes one",
      ),
    );
  for (const name of TOP) {
    const entry = top.get(name);
    if (!entry) continue;
    const wanted = name === "mesh.json" ? "file" : "folder";
    const why =
      unsupported(entry) ?? (entry.kind === wanted ? null : `is a ${entry.kind}; must be a ${wanted}`);
    if (why) problems.push(whole(name, why));
  }
  const folder = (name: string) => {
    const entry = top.get(name);
    return entry?.kind === "folder" ? entry.oid : null;
  };
  return { problems, folder };
}

function whole(file: string, message: string): Problem {
  return { file, line: 0, column: 0, path: "", message };
}

function seatsOf({ entries, problems }: ModulesStage): ReadonlySet<string> | null {
  const unread = problems.some(({ file }) => !file.includes("/", "modules/".length));
  if (unread || [...entries.values()].some(({ face }) => face.ids === null)) return null;
  return new Set([...entries.values()].flatMap(({ face }) => face.seats));
}

/** The text of a file of the catalogue, "" when it is none of them. */
function textOf(stage: Stage, file: string): string {
  if (file === "mesh.json") return stage.mesh.text;
  const [folder, name = "", rest] = file.split("/");
  if (folder === "modules" && rest === "module.json") return stage.modules.entries.get(name)?.read.text ?? "";
  const key = name.replace(/\.json$/, "");
  if (folder === "nodes") return stage.nodes.entries.get(key)?.read.text ?? "";
  return folder === "groups" ? (stage.groups.entries.get(key)?.read.text ?? "") : "";
}
