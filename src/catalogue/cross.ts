import type { Problem } from "./catalogue.ts";
import type { FileEntry } from "./folder-of-files.ts";
import type { Face, ModuleEntry } from "./modules.ts";
import { suggestion } from "./nearest.ts";
import { formatPath, type JsonPath, locate } from "./parse.ts";
import { describe } from "./problems.ts";
import { entriesOf, isObject, itemsOf, namesOf } from "./raw.ts";
import { fitsSetting, SETTING_WORDS } from "./settings.ts";

type Faces = ReadonlyMap<string, Face>;

/** What cross-checks know of one file. */
interface Subject {
  file: string;
  text: string;
  raw: unknown;
}

/**
 * Checks between files that need no placement. What was found in a file is remembered as long as the file and
 * the modules' faces stay the same objects, so that a merge of one module does not check the others again.
 */
export class CrossChecks {
  readonly #memo = new WeakMap<object, { faces: Faces; problems: Problem[] }>();

  check(of: {
    faces: Faces;
    modules: ReadonlyMap<string, ModuleEntry>;
    mesh: Subject | null;
    files: Array<ReadonlyMap<string, FileEntry<unknown>>>;
  }): Problem[] {
    const { faces } = of;
    const problems: Problem[] = [];
    const add = (owner: object, work: () => Problem[]) => {
      let known = this.#memo.get(owner);
      if (known?.faces !== faces) {
        known = { faces, problems: work() };
        this.#memo.set(owner, known);
      }
      if (known.problems.length > 0) problems.push(...known.problems);
    };
    const { mesh } = of;
    if (mesh) add(mesh, () => checkOverrides(mesh, faces));
    for (const entries of of.files)
      for (const entry of entries.values())
        add(entry, () => {
          const subject = { file: entry.file, text: entry.read.text, raw: entry.read.raw };
          return [...checkModuleNames(subject, "modules", faces), ...checkOverrides(subject, faces)];
        });
    for (const entry of of.modules.values()) add(entry, () => checkModuleRefs(entry, faces));
    return [...problems, ...checkSeats(of.modules)];
  }
}

function problem(subject: Subject, path: JsonPath, message: string, at: "key" | "value" = "value"): Problem {
  return { file: subject.file, ...locate(subject.text, path, at), path: formatPath(path), message };
}

function checkModuleNames(subject: Subject, key: string, faces: Faces): Problem[] {
  if (!isObject(subject.raw)) return [];
  const seen = new Set<string>();
  return namesOf(subject.raw[key]).flatMap(([i, name]) => {
    if (!faces.has(name)) return [problem(subject, [key, i], unknownModule(name, faces))];
    if (seen.has(name)) return [problem(subject, [key, i], `module ${describe(name)} is named twice`)];
    seen.add(name);
    return [];
  });
}

function unknownModule(name: string, faces: Faces): string {
  return `unknown module ${describe(name)}${suggestion(name, faces.keys(), "modules")}`;
}

function checkOverrides(subject: Subject, faces: Faces): Problem[] {
  if (!isObject(subject.raw)) return [];
  return entriesOf(subject.raw.settings).flatMap(([module, overrides]) => {
    const face = faces.get(module);
    if (!face) return [problem(subject, ["settings", module], unknownModule(module, faces), "key")];
    const { settings } = face;
    if (!settings) return [];
    return entriesOf(overrides).flatMap(([key, value]) => {
      const path = ["settings", module, key];
      const type = settings.get(key);
      if (type === undefined) {
        const near = suggestion(key, settings.keys(), `settings of ${module}`);
        return [problem(subject, path, `unknown setting ${describe(key)}${near}`, "key")];
      }
      if (fitsSetting(type, value) || !["string", "number", "boolean"].includes(typeof value)) return [];
      return [problem(subject, path, `found ${describe(value)}; must be ${SETTING_WORDS[type]}`)];
    });
  });
}

function checkModuleRefs(entry: ModuleEntry, faces: Faces): Problem[] {
  const subject = { file: entry.file, text: entry.read.text, raw: entry.read.raw };
  if (!isObject(subject.raw)) return [];
  const problems = checkModuleNames(subject, "requires", faces);
  for (const [i, name] of namesOf(subject.raw.requires)) {
    const tier = faces.get(name)?.tier ?? null;
    if (name === entry.name)
      problems.push(problem(subject, ["requires", i], "a module cannot require itself"));
    else if (tier !== null && entry.face.tier !== null && tier > entry.face.tier)
      problems.push(
        problem(
          subject,
          ["requires", i],
          `${describe(name)} is of tier ${tier}; a module of tier ${entry.face.tier} may only require modules of its own tier or a lower one`,
        ),
      );
  }
  itemsOf(subject.raw.resources).forEach((resource, i) => {
    if (!isObject(resource)) return;
    for (const key of ["restartOn", "reloadOn"])
      for (const [j, ref] of namesOf(resource[key]))
        problems.push(...checkForeignRef(subject, ["resources", i, key, j], ref, entry.name, faces));
  });
  return problems;
}

/** `module.id` of another module; what stands in the module itself was checked with its manifest. */
function checkForeignRef(
  subject: Subject,
  path: JsonPath,
  ref: string,
  own: string,
  faces: Faces,
): Problem[] {
  const [module, id] = ref.split(".");
  if (module === undefined || id === undefined || module === own) return [];
  const face = faces.get(module);
  if (!face) return [problem(subject, path, unknownModule(module, faces))];
  if (!face.ids || face.ids.has(id)) return [];
  return [
    problem(subject, path, `unknown id ${describe(ref)}${suggestion(id, face.ids, `ids of ${module}`)}`),
  ];
}

function checkSeats(modules: ReadonlyMap<string, ModuleEntry>): Problem[] {
  const holders = new Map<string, ModuleEntry>();
  const problems: Problem[] = [];
  for (const entry of modules.values())
    for (const seat of entry.face.seats) {
      const first = holders.get(seat);
      if (!first) holders.set(seat, entry);
      else
        problems.push(
          problem(
            { file: entry.file, text: entry.read.text, raw: null },
            ["seats", seat],
            `the seat ${describe(seat)} is held by module ${describe(first.name)} already; one module holds a seat`,
            "key",
          ),
        );
    }
  return problems;
}
