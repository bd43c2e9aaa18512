import { createHash } from "node:crypto";
import type { Stats } from "node:fs";
import type { Files } from "../../io/files.ts";
import { refuseLinks } from "../../io/paths.ts";
import type { Driver, HostPlace, Observation } from "../driver.ts";
import { metaDifferences, metaOf, ownersOf } from "../owner.ts";
import { renderText } from "../text.ts";
import { type Accounts, observeEach } from "../user/accounts.ts";
import type { Backups } from "./backups.ts";
import type { DeclaredFile } from "./schema.ts";

/** `sha`: what this host wrote (or found equal), so that a later change by someone else is seen. */
export interface FileRecord {
  path: string;
  sha: string;
  parents: string[];
}

export interface FileParts {
  place: HostPlace;
  accounts: Accounts;
  files: Files;
  backups: Backups;
  /** Bytes by sha256 (hex); throws when they cannot be had now. */
  objects: { get(sha256: string): Promise<Uint8Array> };
  now: () => number;
}

interface Wanted {
  uid: number | null | "unknown";
  gid: number | null | "unknown";
}

const SAME: Observation = { state: "same", fields: [], detail: "" };
/** A change within this time of looking may leave the same times and size: what is that young is hashed again. */
const SETTLED_MS = 2_000;
const LARGEST_BACKUP = 64 * 1024 * 1024;

const sha256 = (bytes: Uint8Array | string) => createHash("sha256").update(bytes).digest("hex");
/** Nothing of a file can change and leave all of these; its mode and owner move ctime too. */
const unmoved = (a: Stats, b: Stats) =>
  a.ctimeMs === b.ctimeMs &&
  a.mtimeMs === b.mtimeMs &&
  a.size === b.size &&
  a.ino === b.ino &&
  a.dev === b.dev;

/** Digests of files: by stat alone while nothing moved, else by hashing once. */
function createHasher(files: Files, now: () => number) {
  const seen = new Map<string, { stat: Stats; sha: string; settled: boolean }>();
  return {
    /** Whether what was seen before still holds without looking into the file. */
    unmoved(path: string, stat: Stats): boolean {
      const known = seen.get(path);
      return known?.settled === true && unmoved(known.stat, stat);
    },
    async shaOf(path: string, stat: Stats): Promise<string> {
      const known = seen.get(path);
      if (known?.settled && unmoved(known.stat, stat)) return known.sha;
      const at = now();
      const hashed = await files.hash(path);
      if (hashed === null) return "";
      const settled = Math.max(hashed.stat.ctimeMs, hashed.stat.mtimeMs) < at - SETTLED_MS;
      seen.set(path, { stat: hashed.stat, sha: hashed.sha, settled });
      return hashed.sha;
    },
  };
}

/** What a declared file must hold. Rendered and hashed once for each declaration received. */
function createBodies(place: HostPlace, objects: FileParts["objects"]) {
  const shas = new WeakMap<DeclaredFile, string>();
  const small = ({ body }: DeclaredFile): Uint8Array | null => {
    if ("text" in body) return Buffer.from(renderText(body.text, place.realPath), "utf8");
    if ("base64" in body) return Buffer.from(body.base64, "base64");
    return null;
  };
  return {
    shaOf(d: DeclaredFile): string {
      const known = shas.get(d);
      if (known !== undefined) return known;
      const sha = "object" in d.body ? d.body.object : sha256(small(d)!);
      shas.set(d, sha);
      return sha;
    },
    bytesOf: async (d: DeclaredFile) => small(d) ?? objects.get((d.body as { object: string }).object),
  };
}

async function keepCopy(parts: FileParts, path: string, real: string): Promise<string | null> {
  const bytes = await parts.files.read(real);
  return bytes === null ? null : `a copy is kept as ${parts.backups.keep(path, bytes)}`;
}

async function removeFile(parts: FileParts, record: FileRecord) {
  const { path } = record;
  const real = parts.place.realPath(path);
  const stat = parts.files.stat(real);
  if (!stat) return { kept: null, note: null };
  if (!stat.isFile() || stat.nlink > 1)
    return { kept: `${path} is no longer the file that was made here and is left`, note: null };
  const now = await parts.files.hash(real);
  if (now === null) return { kept: null, note: null };
  let note: string | null = null;
  if (now.sha !== record.sha) {
    if (stat.size > LARGEST_BACKUP)
      return { kept: `${path} was changed since and is too large to be kept elsewhere; it is left`, note };
    note = `${path} was changed since; ${await keepCopy(parts, path, real)}`;
  }
  await parts.files.removeFile(real);
  return { kept: null, note };
}

export function createFileDriver(parts: FileParts): Driver<DeclaredFile, FileRecord> {
  const { place, accounts, files } = parts;
  const hasher = createHasher(files, parts.now);
  const bodies = createBodies(place, parts.objects);

  /** Declared files that were as declared, with the owners that this meant then. */
  const held = new WeakMap<DeclaredFile, Wanted>();

  /** The whole check of a file that nobody touched: one stat. */
  function holds(d: DeclaredFile, wanted: Wanted): boolean {
    const before = held.get(d);
    if (!before || before.uid !== wanted.uid || before.gid !== wanted.gid) return false;
    const real = place.realPath(d.path);
    const stat = files.stat(real);
    return stat !== undefined && stat.nlink === 1 && hasher.unmoved(real, stat);
  }

  async function look(d: DeclaredFile, wanted: Wanted): Promise<Observation | Error> {
    held.delete(d);
    const real = place.realPath(d.path);
    try {
      const stat = files.stat(real);
      if (!stat) return { state: "absent", fields: ["path"], detail: `${d.path} is absent` };
      refuseLinks(d.path, stat);
      if (!stat.isFile())
        return { state: "differs", fields: ["path"], detail: `${d.path} is there and is not a regular file` };
      const differences = metaDifferences(d, wanted, stat);
      if ((await hasher.shaOf(real, stat)) !== bodies.shaOf(d)) differences.push(["content", "content"]);
      if (differences.length === 0) {
        held.set(d, wanted);
        return SAME;
      }
      return {
        state: "differs",
        fields: differences.map(([field]) => field),
        detail: differences.map(([, detail]) => detail).join("; "),
      };
    } catch (error) {
      return error as Error;
    }
  }

  return {
    type: "file",
    observe: (declared) =>
      observeEach(
        declared.map((d) => d.id),
        async () => {
          const wanted = await ownersOf(place, accounts, declared);
          const seen = new Map<string, Observation | Error>();
          for (const d of declared) {
            const owners = wanted(d);
            seen.set(d.id, holds(d, owners) ? SAME : await look(d, owners));
          }
          return seen;
        },
      ),
    async apply(d, record, observation) {
      const sha = bodies.shaOf(d);
      const parents = record?.parents ?? [];
      if (observation.state === "same") return { record: { path: d.path, sha, parents }, changed: false };
      const real = place.realPath(d.path);
      const meta = await metaOf(place, accounts, d);
      const there = await files.hash(real);
      if (there?.sha === sha) {
        await files.setMeta(real, meta, "file");
        return { record: { path: d.path, sha, parents }, changed: true };
      }
      const foreign = there !== null && there.sha !== record?.sha && there.stat.size <= LARGEST_BACKUP;
      const bytes = await bodies.bytesOf(d);
      const note = foreign ? await keepCopy(parts, d.path, real) : null;
      const made = await files.write(real, bytes, meta);
      return { record: { path: d.path, sha, parents: [...parents, ...made] }, changed: true, note };
    },
    remove: (_id, record) => removeFile(parts, record),
  };
}
