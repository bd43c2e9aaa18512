import { execFileSync, spawnSync } from "node:child_process";
import { openCatalogue } from "../src/catalogue/open.ts";
import { createComposer, OFFLINE_FACTS } from "../src/composition/compose.ts";
import { scaled } from "./config.ts";
import { BenchRepository, catalogueFiles, modulePath, moduleText } from "./support/repository.ts";
import { cpu, emit, median, wall } from "./support/row.ts";

const CHANGES = 21;

/** A resident controller's look at a merge that changes one module. */
async function measure(modules: number, nodes: number, reach: number): Promise<void> {
  const repository = new BenchRepository();
  const reader = await (async () => {
    let before = repository.commit(catalogueFiles(nodes, modules));
    const opened = await openCatalogue({ kind: "git", path: repository.dir, ref: "main" });
    const composer = createComposer();
    const look = async (commit: string) => {
      const read = await opened.read(commit);
      if (!read.ok) throw new Error(JSON.stringify(read.problems.slice(0, 3)));
      const { view } = composer.resolve(read.catalogue);
      const { problems } = composer.compose(view, OFFLINE_FACTS);
      if (problems.length > 0) throw new Error(problems[0]?.message);
    };
    const coldRead = await wall(() => opened.read(before));
    const used: number[] = [];
    const passed: number[] = [];
    const diff: number[] = [];
    await look(before);
    for (let i = 0; i < CHANGES; i++) {
      const commit = repository.commit({ [modulePath(i)]: moduleText(i, `change ${i}`) });
      const from = before;
      used.push(await cpu(async () => passed.push(await wall(() => look(commit)))));
      diff.push(
        await wall(() => execFileSync("git", ["-C", repository.dir, "diff-tree", "-r", from, commit])),
      );
      before = commit;
    }
    emit({
      row: `1 of ${modules} modules changed: read, validate, compose (${nodes} nodes)`,
      family: "read and compose one change",
      size: modules,
      value: median(passed),
      unit: "ms",
      limit: { what: "git diff-tree -r, as a process", value: median(diff) },
      reach: { value: reach, of: "value" },
      note: `${median(used).toFixed(1)} ms of CPU`,
    });
    const ids = repository.git("ls-tree", "-r", "--format=%(objectname)", "main");
    const batch = await wall(() =>
      spawnSync("git", ["-C", repository.dir, "cat-file", "--batch"], {
        input: `${ids}\n`,
        maxBuffer: 1 << 28,
      }),
    );
    emit({
      row: `first read of ${modules} modules, ${nodes} nodes`,
      family: "first read",
      size: modules,
      value: coldRead,
      unit: "ms",
      limit: { what: "git cat-file --batch of the same blobs", value: batch },
    });
    return opened;
  })();
  await reader.close();
  repository.remove();
}

await measure(scaled(1_000), scaled(1_000), 20);
await measure(scaled(10_000), scaled(1_000), 100);
