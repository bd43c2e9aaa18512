import { mkdirSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { type CatalogueReader, openCatalogue } from "../../../src/catalogue/open.ts";
import { eventually } from "../../support/eventually.ts";
import { catalogueFiles, git, Repository } from "../../support/repository.ts";

let repository: Repository;
let reader: CatalogueReader;
let stop: AbortController;
/** The commits that a watcher adopted, each once, and the errors it met. */
let adopted: string[];
let errors: unknown[];

beforeEach(() => {
  repository = new Repository();
  stop = new AbortController();
  adopted = [];
  errors = [];
});

afterEach(async () => {
  stop.abort();
  await reader?.close();
  repository.remove();
});

/** The safety poll is set so far away that only the watch itself can be seen working. */
async function startWatching(poll = 3_600_000): Promise<void> {
  reader = await openCatalogue({ kind: "git", path: repository.bare, ref: "main" });
  const onHint = async () => {
    try {
      const commit = await reader.resolveRef();
      if (adopted.at(-1) !== commit) adopted.push(commit);
    } catch (error) {
      errors.push(error);
    }
  };
  await reader.watch({ onHint, signal: stop.signal, poll });
}

const isAdopted = (commit: string) => eventually(() => adopted.at(-1) === commit);

test("CAT-1: pushes between pack-refs and gc are adopted; maintenance alone adopts nothing", async () => {
  const first = repository.push(catalogueFiles());
  await startWatching();
  await isAdopted(first);
  git(repository.bare, "pack-refs", "--all");
  const second = repository.push({ "README.md": "2" });
  await isAdopted(second);
  git(repository.bare, "gc", "-q", "--prune=now");
  const third = repository.push({ "README.md": "3" });
  await isAdopted(third);
  expect(adopted).toEqual([first, second, third]);
  expect(errors).toEqual([]);
});

test("CAT-1: a watcher started while the ref is only in packed-refs adopts the next pushes", async () => {
  const first = repository.push(catalogueFiles());
  git(repository.bare, "pack-refs", "--all");
  await startWatching();
  await isAdopted(first);
  const second = repository.push({ "README.md": "2" });
  await isAdopted(second);
  git(repository.bare, "pack-refs", "--all");
  git(repository.bare, "gc", "-q", "--prune=now");
  const third = repository.push({ "README.md": "3" });
  await isAdopted(third);
  expect(adopted).toEqual([first, second, third]);
  expect(errors).toEqual([]);
});

test("a burst of 20 pushes ends at the newest", async () => {
  repository.push(catalogueFiles());
  await startWatching();
  let last = "";
  for (let i = 0; i < 20; i++) {
    git(repository.work, "commit", "-q", "--allow-empty", "-m", `Push ${i}`);
    last = git(repository.work, "rev-parse", "HEAD");
    git(repository.work, "push", "-q", "origin", "HEAD:refs/heads/main");
  }
  await isAdopted(last);
});

test("a branch that is deleted is an error; pushed again, it is adopted", async () => {
  const first = repository.push(catalogueFiles());
  await startWatching();
  await isAdopted(first);
  git(repository.bare, "update-ref", "-d", "refs/heads/main");
  await eventually(() => errors.length > 0);
  const second = repository.push({ "README.md": "2" });
  await isAdopted(second);
});

test("a folder of refs that goes and comes back is watched again", async () => {
  const first = repository.push(catalogueFiles());
  await startWatching(100);
  await isAdopted(first);
  git(repository.bare, "pack-refs", "--all");
  rmSync(join(repository.bare, "refs/heads"), { recursive: true });
  mkdirSync(join(repository.bare, "refs/heads"));
  const second = repository.push({ "README.md": "2" });
  await isAdopted(second);
  expect(errors).toEqual([]);
});

test("a repository that is moved away and back is read and watched again", async () => {
  const first = repository.push(catalogueFiles());
  await startWatching(100);
  await isAdopted(first);
  renameSync(repository.bare, `${repository.bare}.away`);
  await eventually(() => errors.length > 0);
  git(repository.top, "clone", "-q", "--bare", `${repository.bare}.away`, repository.bare);
  const second = repository.push({ "README.md": "2" });
  await isAdopted(second);
});
