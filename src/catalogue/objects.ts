/** One entry of a folder of the catalogue, as Git names it. */
export interface Entry {
  name: string;
  kind: "file" | "folder" | "symlink" | "submodule" | "special";
  oid: string;
}

/** Where the catalogue's objects come from: a Git repository or a plain folder. A missing object is an error. */
export interface Objects {
  readTree(oid: string): Promise<Entry[]>;
  readBlob(oid: string): Promise<Buffer>;
}

/** Why an entry is refused wherever the catalogue looks, whatever its name; nothing of its target is read. */
export function unsupported(entry: Entry): string | null {
  if (entry.kind === "symlink") return "symlink not supported; put the file itself here";
  if (entry.kind === "submodule") return "submodule not supported; put the files themselves here";
  if (entry.kind === "special") return "is neither a file nor a folder; only those are supported";
  return null;
}
