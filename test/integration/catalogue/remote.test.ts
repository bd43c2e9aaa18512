import { readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type CatalogueReader, openCatalogue } from "../../../src/catalogue/open.ts";
import { pollRemote } from "../../../src/catalogue/remote.ts";
import { eventually } from "../../support/eventually.ts";
import { type GitServer, startGitServer } from "../../support/git-server.ts";
import { catalogueFiles, git, Repository } from "../../support/repository.ts";

const TOKEN = "s3cr3t-token";
let repository: Repository;
let server: GitServer;
let readers: CatalogueReader[];

beforeEach(async () => {
  repository = new Repository();
  server = await startGitServer(repository.top, TOKEN);
  readers = [];
});

afterEach(async () => {
  for (const reader of readers) await reader.close();
  await server.close();
  repository.remove();
});

async function openRemote(
  prefer: "git" | "isomorphic",
  options: { token?: string; url?: string; idle?: number } = {},
) {
  const reader = await openCatalogue(
    {
      kind: "remote",
      url: options.url ?? server.url("catalogue.git"),
      ref: "main",
      clone: join(repository.top, "clone"),
      token: async () => options.token ?? TOKEN,
    },
    { prefer, idle: options.idle ?? 20_000, within: 25_000 },
  );
  readers.push(reader);
  return reader;
}

describe.each(["git", "isomorphic"] as const)("a remote read through %s", (prefer) => {
  test("is cloned with its token, and fetched when it moves, back too", async () => {
    const first = repository.push(catalogueFiles());
    const reader = await openRemote(prefer);
    await reader.sync();
    expect(await reader.resolveRef()).toBe(first);
    expect(await reader.read(first)).toMatchObject({ ok: true });
    const second = repository.push({ "modules/base/files/motd": "two\n" });
    await reader.sync();
    expect(await reader.resolveRef()).toBe(second);
    expect(await reader.read(second)).toMatchObject({ ok: true });
    expect(await reader.isAncestor(first, second)).toBe(true);
    git(repository.work, "reset", "-q", "--hard", first);
    const third = repository.push({ "README.md": "x" });
    await reader.sync();
    expect(await reader.resolveRef()).toBe(third);
    expect(await reader.isAncestor(second, third)).toBe(false);
  });

  test("repairs its clone when objects, packs or refs of it are damaged", async () => {
    const first = repository.push(catalogueFiles());
    const clone = join(repository.top, "clone");
    const damages = [
      () => rmSync(join(clone, "objects"), { recursive: true }),
      () => rmSync(clone, { recursive: true }),
      () => writeFileSync(join(clone, "refs/heads/main"), ""),
      () => {
        for (const name of readdirSync(join(clone, "objects/pack")))
          writeFileSync(join(clone, "objects/pack", name), "torn");
      },
    ];
    for (const damage of damages) {
      const reader = await openRemote(prefer);
      await reader.sync();
      damage();
      const again = await openRemote(prefer);
      await again.sync();
      expect(await again.read(first)).toMatchObject({ ok: true });
    }
    expect(readdirSync(repository.top).filter((n) => n.startsWith("clone."))).toEqual([]);
  });
});

test("a refused token, a missing repository and a deleted branch are errors without credentials in them", async () => {
  repository.push(catalogueFiles());
  const url = server.url("catalogue.git").replace("http://", `http://ada:${TOKEN}x@`);
  const reader = await openRemote("git", { url, token: "" });
  const refused = await reader.sync().catch((e: Error) => e);
  expect(refused).toMatchObject({ code: "remote-refused", next: "wait" });
  expect(
    JSON.stringify([refused, (refused as Error).message, (refused as Error).stack, reader.source]),
  ).not.toContain(TOKEN);
  const absent = await openRemote("git", { url: server.url("other.git") });
  await expect(absent.sync()).rejects.toMatchObject({ code: "remote-refused" });
  const ok = await openRemote("git");
  await ok.sync();
  git(repository.bare, "update-ref", "-d", "refs/heads/main");
  await expect(ok.sync()).rejects.toMatchObject({ code: "ref-missing" });
  expect(await ok.resolveRef()).toMatch(/^[0-9a-f]{40}$/);
});

test("a repository that moved on its host is followed", async () => {
  const first = repository.push(catalogueFiles());
  const reader = await openRemote("git", { url: server.url("moved/catalogue.git") });
  await reader.sync();
  expect(await reader.resolveRef()).toBe(first);
});

test("a server that answers nothing, fails or is away is waited for in bounds, and the clone stays readable", async () => {
  const first = repository.push(catalogueFiles());
  const reader = await openRemote("git", { idle: 300 });
  await reader.sync();
  server.mood = "hang";
  await expect(reader.sync()).rejects.toMatchObject({ code: "remote-unreachable", next: "retry" });
  server.mood = 503;
  await expect(reader.sync()).rejects.toMatchObject({ code: "remote-unreachable" });
  await server.close();
  await expect(reader.sync()).rejects.toMatchObject({ code: "remote-unreachable" });
  expect(await reader.read(first)).toMatchObject({ ok: true });
});

test("polling hints when the tip moves and goes on after an error", async () => {
  repository.push(catalogueFiles());
  const reader = await openRemote("git");
  const stop = new AbortController();
  const seen: string[] = [];
  const errors: unknown[] = [];
  await reader.watch({
    onHint: async () => void seen.push(await reader.resolveRef()),
    onError: (error) => errors.push(error),
    signal: stop.signal,
    poll: 20,
  });
  await eventually(() => seen.length === 1);
  server.mood = 500;
  await eventually(() => errors.length > 0);
  server.mood = "serve";
  const second = repository.push({ "README.md": "two" });
  await eventually(() => seen.at(-1) === second);
  stop.abort();
});

test("a remote that answers again is a hint, though its tip did not move", async () => {
  const ending = new AbortController();
  const told: string[] = [];
  const answers = ["a", "a", new Error("away"), "a"];
  await pollRemote(
    async () => {
      const answer = answers.shift() ?? "a";
      if (answer instanceof Error) throw answer;
      if (answers.length === 0) setTimeout(() => ending.abort(), 0);
      return answer;
    },
    {
      every: 1,
      signal: ending.signal,
      onHint: () => void told.push("hint"),
      onError: () => void told.push("error"),
    },
  );
  expect(told).toEqual(["hint", "error", "hint"]);
});
