import { spawn } from "node:child_process";
import { connect, isIPv6, type Socket } from "node:net";
import { networkInterfaces } from "node:os";
import { connect as connectTls } from "node:tls";
import type { Clock } from "../../io/clock.ts";
import { linesOf } from "./logs.ts";
import type { ProcFs } from "./proc.ts";
import type { RenderedCheck } from "./types.ts";

/** null: passed; else one line that says why not. */
export type CheckResult = string | null;

export interface CheckDeps {
  proc: ProcFs;
  clock: Clock;
  /** Pids of the process that is checked; asked again while a connection waits to be accepted. */
  members(): number[];
  exec: { argv: string[]; env: Record<string, string>; cwd: string } | null;
}

export function runCheck(check: RenderedCheck, deps: CheckDeps): Promise<CheckResult> {
  if ("exec" in check) return checkExec(check.timeout, deps);
  if ("tcp" in check) return checkTcp(check.tcp, check.timeout, deps);
  return checkHttp(check.http, check.timeout, deps);
}

/** Bounded in time and output; the whole group goes when it is over. */
function checkExec(timeout: number, deps: CheckDeps): Promise<CheckResult> {
  const exec = deps.exec!;
  const [file, ...args] = exec.argv;
  return new Promise((resolve) => {
    const child = spawn(file!, args, {
      env: exec.env,
      cwd: exec.cwd,
      stdio: ["ignore", "pipe", "pipe"],
      detached: true,
    });
    let last = Buffer.alloc(0);
    const keep = (chunk: Buffer) => {
      last = Buffer.concat([last, chunk]).subarray(-2_000);
    };
    child.stdout.on("data", keep);
    child.stderr.on("data", keep);
    const endGroup = () => {
      // The group is the child's own, and it is not reaped yet or its number is still held by what is in the group.
      try {
        if (child.pid) process.kill(-child.pid, "SIGKILL");
      } catch {
        // Nobody is left in it.
      }
    };
    const timer = setTimeout(() => {
      endGroup();
      finish(`exec check ${file} took longer than ${timeout} ms`);
    }, timeout);
    const finish = (result: CheckResult) => {
      clearTimeout(timer);
      child.stdout.destroy();
      child.stderr.destroy();
      resolve(result);
    };
    child.once("error", (error) => finish(`exec check ${file}: ${error.message}`));
    child.once("exit", (code, signal) => {
      const line = linesOf(last).pop() ?? "";
      finish(code === 0 ? null : `exec check ${file} ended with ${signal ?? code}${line ? `: ${line}` : ""}`);
    });
  });
}

interface Target {
  host: string;
  port: number;
}

async function checkTcp(address: string, timeout: number, deps: CheckDeps): Promise<CheckResult> {
  const at = address.lastIndexOf(":");
  const target = { host: address.slice(0, at).replace(/^\[|\]$/g, ""), port: Number(address.slice(at + 1)) };
  return withConnection(`tcp ${address}`, target, timeout, deps, async (socket, deadline) =>
    owned(socket, deps, deadline),
  );
}

async function checkHttp(address: string, timeout: number, deps: CheckDeps): Promise<CheckResult> {
  const url = URL.canParse(address) ? new URL(address) : null;
  if (!url || !["http:", "https:"].includes(url.protocol)) return `check ${address} is not a http(s) URL`;
  const secure = url.protocol === "https:";
  const target = {
    host: url.hostname.replace(/^\[|\]$/g, ""),
    port: Number(url.port || (secure ? 443 : 80)),
  };
  return withConnection(`http ${address}`, target, timeout, deps, async (socket, deadline) => {
    // Whose answer it is matters here, not who it says it is: certificates are not looked at.
    const over = secure
      ? connectTls({ socket, servername: servername(target.host), rejectUnauthorized: false })
      : socket;
    const answer = statusOf(over);
    // A server that defers accepting until data arrives gets some, and cannot answer before the last line.
    over.write(`GET ${url.pathname}${url.search} HTTP/1.1\r\nHost: ${url.host}\r\nUser-Agent: mesh-host\r\n`);
    const why = await owned(socket, deps, deadline);
    if (why) {
      answer.catch(() => undefined);
      return why;
    }
    over.write("Accept: */*\r\nConnection: close\r\n\r\n");
    const status = await answer;
    return status >= 200 && status < 400 ? null : `answered ${status}, expected 200 to 399`;
  });
}

const servername = (host: string) => (isIPv6(host) || /^[\d.]+$/.test(host) ? "" : host);

/** The status of a HTTP/1 answer. Only its first line is read. */
function statusOf(socket: Socket): Promise<number> {
  return new Promise((resolve, reject) => {
    let text = "";
    socket.on("data", (chunk: Buffer) => {
      text += chunk.toString("latin1");
      const match = /^HTTP\/\d(?:\.\d)? (\d{3})/.exec(text);
      if (match) resolve(Number(match[1]));
      else if (text.length > 64) reject(new Error("answered, but not in HTTP"));
    });
    socket.once("error", reject);
    socket.once("close", () => reject(new Error("closed the connection without an answer")));
  });
}

async function withConnection(
  name: string,
  target: Target,
  timeout: number,
  deps: CheckDeps,
  work: (socket: Socket, deadline: number) => Promise<CheckResult>,
): Promise<CheckResult> {
  const deadline = deps.clock.monotonic() + timeout;
  const socket = connect({ host: target.host, port: target.port });
  const expired = new AbortController();
  try {
    const result = await Promise.race([
      (async () => {
        await new Promise<void>((done, failed) => {
          socket.once("connect", done);
          socket.once("error", failed);
        });
        socket.on("error", () => undefined);
        if (!isLocal(socket.remoteAddress ?? ""))
          return `${socket.remoteAddress} is not an address of this machine, so nobody can tell whose answer it is`;
        return await work(socket, deadline);
      })(),
      deps.clock.sleep(timeout, expired.signal).then(
        () => `no answer within ${timeout} ms`,
        () => null,
      ),
    ]);
    return result === null ? null : `${name}: ${result}`;
  } catch (error) {
    return `${name}: ${(error as NodeJS.ErrnoException).code ?? (error as Error).message}`;
  } finally {
    expired.abort();
    socket.destroy();
  }
}

function isLocal(address: string): boolean {
  const plain = address.replace(/^::ffff:/, "");
  if (plain === "::1" || plain.startsWith("127.")) return true;
  return Object.values(networkInterfaces()).some((list) =>
    list?.some((each) => each.address.split("%")[0] === plain),
  );
}

/** Waits until the server end of this very connection is accepted, and says whether the process that is checked has it. */
async function owned(socket: Socket, deps: CheckDeps, deadline: number): Promise<CheckResult> {
  const client = endpoint(socket.localAddress!, socket.localPort!);
  const server = endpoint(socket.remoteAddress!, socket.remotePort!);
  for (let step = 1; ; step = Math.min(50, step * 2)) {
    const inode = serverInode(deps.proc.tcp(), server, client);
    if (inode) {
      const wanted = `socket:[${inode}]`;
      const holds = (pid: number) => [...deps.proc.descriptors(pid).values()].includes(wanted);
      if (deps.members().some(holds)) return null;
    }
    if (deps.clock.monotonic() + step >= deadline)
      return inode ? "another program answers at this port" : "the connection was not accepted in time";
    if (inode && step >= 16) return "another program answers at this port";
    await deps.clock.sleep(step);
  }
}

/** The inode of the connection as its server end has it; 0 or none before it is accepted. */
export function serverInode(tcp: string, server: string, client: string): string | null {
  for (const line of tcp.split("\n")) {
    const fields = line.trim().split(/\s+/);
    if (!fields[1] || !fields[2]) continue;
    if (plainEndpoint(fields[1]) === server && plainEndpoint(fields[2]) === client)
      return fields[9] && fields[9] !== "0" ? fields[9] : null;
  }
  return null;
}

/** "hex address:hex port", an IPv4 address that was mapped into IPv6 as the IPv4 one. */
function plainEndpoint(text: string): string {
  const mapped = "0000000000000000FFFF0000";
  return text.startsWith(mapped) ? text.slice(mapped.length) : text;
}

/** An address as /proc/net/tcp writes it: words of four bytes in the machine's (little-endian) order. */
export function endpoint(address: string, port: number): string {
  const plain = address.replace(/^::ffff:/i, "").split("%")[0]!;
  const bytes = isIPv6(plain) ? bytesOfIPv6(plain) : plain.split(".").map(Number);
  let hex = "";
  for (let word = 0; word < bytes.length; word += 4)
    for (let i = 3; i >= 0; i--) hex += bytes[word + i]!.toString(16).padStart(2, "0");
  return `${hex}:${port.toString(16).padStart(4, "0")}`.toUpperCase();
}

function bytesOfIPv6(address: string): number[] {
  const [head, rest] = address.split("::");
  const words = (text: string | undefined) => (text ? text.split(":") : []);
  const before = words(head);
  const after = words(rest);
  const all = address.includes("::")
    ? [...before, ...Array<string>(8 - before.length - after.length).fill("0"), ...after]
    : before;
  return all.flatMap((word) => [Number.parseInt(word, 16) >> 8, Number.parseInt(word, 16) & 255]);
}
