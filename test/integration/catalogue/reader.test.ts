import { cpSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import type { Catalogue, CatalogueResult } from "../../../src/catalogue/catalogue.ts";
import { readForCheck } from "../../../src/catalogue/check.ts";
import { type CatalogueReader, openCatalogue, readFolder } from "../../../src/catalogue/open.ts";
import { BatchGit } from "../../../src/io/git-batch.ts";
import { catalogueFiles, git, Repository } from "../../support/repository.ts";

const open: Array<{ repository: Repository; reader?: CatalogueReader }> = [];

afterEach(async () => {
  for (const { repository, reader } of open.splice(0)) {
    await reader?.close();
    repository.remove();
  }
});

function good(result: CatalogueResult): Catalogue {
  if (!result.ok) throw new Error(result.problems.map((p) => `${p.file}:${p.line}: ${p.message}`).join("\n"));
  return result.catalogue;
}

function bad(result: CatalogueResult): string[] {
  if (result.ok) throw new Error("the catalogue is valid");
  return result.problems.map((p) => `${p.file}:${p.line}:${p.column}: ${p.message}`);
}

describe.each(["git", "isomorphic"] as const)("reading through %s", (prefer) => {
  async function setUp(files: Record<string, object | string> = catalogueFiles()) {
    const repository = new Repository();
    const opened: { repository: Repository; reader?: CatalogueReader } = { repository };
    open.push(opened);
    const commit = repository.push(files, "First");
    const reader = await openCatalogue({ kind: "git", path: repository.bare, ref: "main" }, { prefer });
    opened.reader = reader;
    return { repository, reader, commit };
  }

  test("a pushed commit becomes a catalogue with its subject, sources and defaults", async () => {
    const { reader, commit } = await setUp();
    expect(await reader.resolveRef()).toBe(commit);
    const catalogue = good(await reader.read(commit));
    expect(catalogue).toMatchObject({ commit, subject: "First" });
    expect([...catalogue.nodes.keys()]).toEqual(["web-1", "web-2"]);
    expect(catalogue.mesh.host.check).toBe(5000);
    const base = catalogue.modules.get("base");
    expect(base?.sources.get("files/motd")?.bytes?.toString()).toBe("welcome\n");
    expect((await reader.readBody(base?.sources.get("files/motd")?.oid as string)).toString()).toBe(
      "welcome\n",
    );
  });

  test("a merge of one module leaves every other object the same", async () => {
    const { repository, reader, commit } = await setUp();
    const before = good(await reader.read(commit));
    const next = repository.push({ "modules/base/files/motd": "changed\n" });
    const after = good(await reader.read(next));
    expect(after.modules.get("web")).toBe(before.modules.get("web"));
    expect(after.nodes).toBe(before.nodes);
    expect(after.modules.get("base")).not.toBe(before.modules.get("base"));
    expect(after.modules.get("base")?.manifest).toBe(before.modules.get("base")?.manifest);
  });

  test("objects stay the same over a refused commit in between", async () => {
    const { repository, reader, commit } = await setUp();
    const before = good(await reader.read(commit));
    rmSync(join(repository.work, "modules"), { recursive: true });
    symlinkSync("/etc", join(repository.work, "modules"));
    expect(bad(await reader.read(repository.push())).join()).toContain("modules:0:0: symlink not supported");
    rmSync(join(repository.work, "modules"));
    const after = good(await reader.read(repository.push(catalogueFiles() as Record<string, object>)));
    expect(after.modules.get("web")).toBe(before.modules.get("web"));
  });

  test("a missing branch, commit or repository is an error, never an empty catalogue", async () => {
    const { repository, reader } = await setUp();
    await expect(reader.read("1".repeat(40))).rejects.toMatchObject({ code: "git-object-missing" });
    git(repository.bare, "update-ref", "-d", "refs/heads/main");
    await expect(reader.resolveRef()).rejects.toMatchObject({ code: "ref-missing" });
    rmSync(repository.bare, { recursive: true });
    await expect(reader.resolveRef()).rejects.toMatchObject({
      code: expect.stringMatching(/unreadable|missing/),
    });
  });

  test("a blob that was lost is an error that names it", async () => {
    const { repository, reader, commit } = await setUp();
    const oid = git(repository.bare, "rev-parse", `${commit}:modules/web/module.json`);
    rmSync(join(repository.bare, "objects", oid.slice(0, 2), oid.slice(2)));
    await expect(reader.read(commit)).rejects.toMatchObject({ code: "git-object-missing", facts: { oid } });
  });

  test("new packs after a repack and gc are read", async () => {
    const { repository, reader, commit } = await setUp();
    good(await reader.read(commit));
    for (let round = 0; round < 3; round++) {
      const next = repository.push({ "modules/base/files/motd": `round ${round}\n` });
      git(repository.bare, "gc", "-q", "--prune=now");
      expect(await reader.resolveRef()).toBe(next);
      const catalogue = good(await reader.read(next));
      expect(catalogue.modules.get("base")?.sources.get("files/motd")?.bytes?.toString()).toBe(
        `round ${round}\n`,
      );
    }
  });

  test("revisions, tags and ancestry are known, also after a force-push", async () => {
    const { repository, reader, commit } = await setUp();
    const second = repository.push({ "README.md": "two" }, "Second\n\nMesh-Confirm: removals 3");
    git(repository.bare, "tag", "-a", "v1", "-m", "tagged", commit);
    expect(await reader.resolveRef("main~1")).toBe(commit);
    expect(await reader.resolveRef("v1")).toBe(commit);
    expect(await reader.resolveRef(second.slice(0, 12))).toBe(second);
    await expect(reader.resolveRef("main~9")).rejects.toMatchObject({ code: "ref-missing" });
    await expect(reader.resolveRef("a..b")).rejects.toMatchObject({ code: "ref-missing" });
    expect((await reader.commit(second)).message).toContain("Mesh-Confirm: removals 3");
    expect(await reader.isAncestor(commit, second)).toBe(true);
    expect(await reader.isAncestor(second, commit)).toBe(false);
    expect(await reader.isAncestor("2".repeat(40), second)).toBe(false);
    git(repository.work, "reset", "-q", "--hard", commit);
    const forced = repository.push({ "README.md": "other" });
    expect(await reader.isAncestor(second, forced)).toBe(false);
  });

  test("CAT-6: a gitlink under modules/ is refused by path; elsewhere it changes nothing", async () => {
    const { repository, reader } = await setUp();
    const link = (path: string) => {
      git(repository.work, "update-index", "--add", "--cacheinfo", `160000,${"a".repeat(40)},${path}`);
      git(repository.work, "commit", "-q", "-m", "Link");
      git(repository.work, "push", "-q", "origin", "HEAD:refs/heads/main");
      return git(repository.work, "rev-parse", "HEAD");
    };
    good(await reader.read(link("vendor/x")));
    expect(bad(await reader.read(link("modules/x")))).toEqual([
      expect.stringContaining("modules/x:0:0: submodule not supported"),
    ]);
    expect(bad(await reader.read(link("modules/web/deep/er")))).toContainEqual(
      expect.stringContaining("modules/web/deep/er:0:0: submodule not supported"),
    );
  });

  test("a symlink deep in a module or in place of a node is refused and nothing of its target is read", async () => {
    const { repository, reader } = await setUp();
    writeFileSync(join(repository.top, "secret"), "nothing to see");
    repository.write({ "modules/web/a/b/file": "x" });
    symlinkSync("../../../../secret", join(repository.work, "modules/web/a/b/link"));
    symlinkSync("web-1.json", join(repository.work, "nodes/web-3.json"));
    symlinkSync("/etc/passwd", join(repository.work, "elsewhere"));
    expect(bad(await reader.read(repository.push()))).toEqual([
      expect.stringContaining("modules/web/a/b/link:0:0: symlink not supported"),
      expect.stringContaining("nodes/web-3.json:0:0: symlink not supported"),
    ]);
  });

  test("deleting the last module and node is a valid catalogue", async () => {
    const { repository, reader } = await setUp();
    const next = repository.push({ modules: null, nodes: null, groups: null });
    const catalogue = good(await reader.read(next));
    expect(catalogue.modules.size + catalogue.nodes.size).toBe(0);
  });

  test("a plain folder has the same ids and content as the commit made of it", async () => {
    const { repository, reader } = await setUp({ ...catalogueFiles(), "modules/web/bin/run": "#!/bin/sh\n" });
    git(repository.work, "update-index", "--chmod=+x", "modules/web/bin/run");
    git(repository.work, "commit", "-q", "-m", "x");
    git(repository.work, "checkout", "-q", "--", ".");
    rmSync(join(repository.work, "modules/web/bin/run"));
    git(repository.work, "checkout", "-q", "--", ".");
    git(repository.work, "push", "-q", "origin", "HEAD:refs/heads/main");
    const committed = good(await reader.read(await reader.resolveRef()));
    const folder = good(await readFolder(repository.work));
    expect([...folder.modules].map(([n, m]) => [n, m.tree])).toEqual(
      [...committed.modules].map(([n, m]) => [n, m.tree]),
    );
    expect(folder.modules.get("web")?.manifest).toEqual(committed.modules.get("web")?.manifest);
  });
});

test("the process that reads is killed again and again and reading goes on", async () => {
  const repository = new Repository();
  open.push({ repository });
  const commit = repository.push(catalogueFiles() as Record<string, object>);
  const reader = new BatchGit(repository.bare);
  for (let round = 0; round < 5; round++) {
    const asked = Array.from({ length: 20 }, () => reader.readCommit(commit));
    process.kill(reader.pid as number, "SIGKILL");
    expect((await Promise.all(asked)).every((c) => c.oid === commit)).toBe(true);
  }
  await reader.close();
});

describe("mesh check reads", () => {
  test("a folder, a bare repository, a ref of it, and a ref of a work tree", async () => {
    const repository = new Repository();
    open.push({ repository });
    const commit = repository.push(catalogueFiles() as Record<string, object>);
    repository.push({ "modules/web/module.json": "{" });
    expect((await readForCheck(repository.work)).ok).toBe(false);
    expect((await readForCheck(repository.bare)).ok).toBe(false);
    expect(good(await readForCheck(`${repository.bare}#main~1`)).commit).toBe(commit);
    expect(good(await readForCheck(`${repository.work}#HEAD~1`)).commit).toBe(commit);
    expect(good(await readForCheck(`${repository.bare}#${commit}`)).commit).toBe(commit);
  });

  test("a folder with links, empty and ignored folders as Git would", async () => {
    const repository = new Repository();
    open.push({ repository });
    repository.write({
      ...catalogueFiles(),
      ".gitignore": "node_modules\n",
      "modules/web/node_modules/x/y.js": "1",
    });
    symlinkSync("y.js", join(repository.work, "modules/web/node_modules/x/link"));
    good(await readForCheck(repository.work));
    symlinkSync("module.json", join(repository.work, "modules/web/link"));
    expect(bad(await readForCheck(repository.work))).toEqual([
      expect.stringContaining("modules/web/link:0:0: symlink not supported"),
    ]);
    rmSync(join(repository.work, "modules/web/link"));
    cpSync(join(repository.work, ".git"), join(repository.work, "modules/web/inner/.git"), {
      recursive: true,
    });
    expect(bad(await readForCheck(repository.work))).toEqual([
      expect.stringContaining("modules/web/inner:0:0: submodule not supported"),
    ]);
  });

  test("what is no catalogue, and what is not there", async () => {
    const repository = new Repository();
    open.push({ repository });
    expect(bad(await readForCheck(repository.top)).join()).toContain("mesh init");
    await expect(readForCheck("/no/such/place")).rejects.toMatchObject({ code: "catalogue-address" });
    await expect(readForCheck("ssh://git@host/x")).rejects.toMatchObject({ code: "catalogue-address" });
  });
});
