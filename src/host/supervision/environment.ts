import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { promisify } from "node:util";
import { EnvFileUnreadable, ProcessUserMissing } from "./errors.ts";
import type { ProcessSpec } from "./types.ts";

/** PATH of processes where the root is "/": the invoker's own says nothing about the machine. */
export const FIXED_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

export interface Account {
  name: string;
  uid: number;
  gid: number;
  home: string;
}

function fromPasswd(text: string, name: string): Account | null {
  const line = text.split("\n").find((each) => each.startsWith(`${name}:`));
  const fields = line?.split(":");
  if (!fields || fields.length < 7) return null;
  return { name, uid: Number(fields[2]), gid: Number(fields[3]), home: fields[5] || "/" };
}

/** The account from /etc/passwd, else from whatever the machine's user database is (getent: 0 found, 2 absent). */
export async function findAccount(id: string, name: string): Promise<Account> {
  const local = fromPasswd(readFileSync("/etc/passwd", "utf8"), name);
  if (local) return local;
  try {
    const { stdout } = await promisify(execFile)("getent", ["passwd", name], { timeout: 10_000 });
    const found = fromPasswd(stdout, name);
    if (found) return found;
  } catch (cause) {
    if ((cause as { code?: unknown }).code !== 2)
      throw new ProcessUserMissing(
        { id, user: name, why: "could not be looked up (the user database did not answer)" },
        { cause },
      );
  }
  throw new ProcessUserMissing({ id, user: name, why: "does not exist" });
}

const LINE = /^(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)=(.*)$/;

function unquote(value: string): string {
  const quote = value[0];
  const closed = value.length >= 2 && (quote === '"' || quote === "'") && value.endsWith(quote);
  return closed ? value.slice(1, -1) : value;
}

/** KEY=VALUE lines; empty lines and lines that begin with # are passed over; one pair of quotes around a value goes. */
export function parseEnvFile(id: string, file: string, text: string): Record<string, string> {
  const found: Record<string, string> = {};
  for (const [index, raw] of text.split(/\r?\n/).entries()) {
    const line = raw.trim();
    if (line === "" || line.startsWith("#")) continue;
    const match = LINE.exec(line);
    if (!match || line.includes("\0"))
      throw new EnvFileUnreadable({ id, file, why: `line ${index + 1} is not KEY=VALUE` });
    found[match[1]!] = unquote(match[2]!.trim());
  }
  return found;
}

/** The whole environment of a process: a small fixed base, its files in their order, then what is declared. */
export function environmentOf(
  spec: ProcessSpec,
  account: Account,
  base: { path: string; lang: string },
): Record<string, string> {
  const files = spec.envFiles.map((file) => {
    try {
      return parseEnvFile(spec.id, file, readFileSync(file, "utf8"));
    } catch (cause) {
      if (cause instanceof EnvFileUnreadable) throw cause;
      const why = (cause as NodeJS.ErrnoException).code ?? "cannot be read";
      throw new EnvFileUnreadable({ id: spec.id, file, why }, { cause });
    }
  });
  const { name, home } = account;
  return Object.assign(
    { PATH: base.path, HOME: home, USER: name, LOGNAME: name, LANG: base.lang },
    ...files,
    spec.env,
  );
}
