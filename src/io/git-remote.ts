import fs from "node:fs";
import { mkdir, rename, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import git, { type GitHttpRequest, type GitHttpResponse, type HttpClient } from "isomorphic-git";
import { meshError, messageOf } from "../errors.ts";
import { RefMissing } from "./git-objects.ts";

/** A repository over HTTP(S). `url` holds no credentials; times in milliseconds. */
export interface Remote {
  url: string;
  /** A full ref, `refs/heads/main`. */
  ref: string;
  auth: { username: string; password: string } | null;
  /** No answer, or no more of it, for this long: the server is taken for gone. */
  idle: number;
  /** The longest that one clone or fetch may take as a whole. */
  within: number;
  signal?: AbortSignal | undefined;
}

export class RemoteUnreachable extends meshError(
  "remote-unreachable",
  "retry",
  (f: { url: string; why: string }) => `${f.url}: cannot be reached: ${f.why}`,
) {}

export class RemoteRefused extends meshError(
  "remote-refused",
  "wait",
  (f: { url: string; status: number }) =>
    f.status === 404
      ? `${f.url}: there is no such repository (404); check the address, and the token's rights`
      : `${f.url}: access is refused (${f.status}); put a valid token into the file named by MESH_CATALOGUE_TOKEN_FILE`,
) {}

/** The id that the remote's ref has now; throws RefMissing when there is none. */
export async function remoteTip(remote: Remote): Promise<string> {
  return bounded(remote, async (http) => {
    const refs = await git.listServerRefs({
      http,
      url: remote.url,
      prefix: remote.ref,
      headers: headersOf(remote),
    });
    const found = refs.find((one) => one.ref === remote.ref);
    if (!found) throw new RefMissing({ repository: remote.url, ref: `ref ${remote.ref}` });
    return found.oid;
  });
}

/** Makes a bare repository at `gitDir` (which must not exist) with the whole history of the ref. */
export async function cloneBare(gitDir: string, remote: Remote): Promise<string> {
  await git.init({ fs, gitdir: gitDir, dir: gitDir, bare: true, defaultBranch: "main" });
  await git.addRemote({ fs, gitdir: gitDir, remote: "origin", url: remote.url, force: true });
  return fetchBare(gitDir, remote);
}

/** Brings what is new of the ref into `gitDir` and moves its ref there, back too. Returns the commit. */
export async function fetchBare(gitDir: string, remote: Remote): Promise<string> {
  const oid = await bounded(remote, async (http) => {
    const { fetchHead } = await git.fetch({
      fs,
      http,
      gitdir: gitDir,
      remote: "origin",
      url: remote.url,
      ref: remote.ref,
      remoteRef: remote.ref,
      singleBranch: true,
      tags: false,
      headers: headersOf(remote),
    });
    if (!fetchHead) throw new RefMissing({ repository: remote.url, ref: `ref ${remote.ref}` });
    return fetchHead;
  });
  await writeRef(gitDir, remote.ref, oid);
  return oid;
}

/** By rename: a reader sees the old id or the new one, never half of it. */
async function writeRef(gitDir: string, ref: string, oid: string): Promise<void> {
  const file = join(gitDir, ref);
  await mkdir(dirname(file), { recursive: true });
  const temporary = `${file}.${process.pid}.new`;
  await writeFile(temporary, `${oid}\n`);
  await rename(temporary, file);
}

function headersOf(remote: Remote): Record<string, string> {
  if (!remote.auth) return {};
  const { username, password } = remote.auth;
  return { Authorization: `Basic ${Buffer.from(`${username}:${password}`).toString("base64")}` };
}

async function bounded<T>(remote: Remote, work: (http: HttpClient) => Promise<T>): Promise<T> {
  const late = AbortSignal.timeout(remote.within);
  const signal = remote.signal ? AbortSignal.any([late, remote.signal]) : late;
  try {
    return await work(following(remote, signal));
  } catch (cause) {
    remote.signal?.throwIfAborted();
    if (late.aborted)
      throw new RemoteUnreachable({ url: remote.url, why: `not done within ${remote.within / 1000} s` });
    const status = (cause as { data?: { statusCode?: number } }).data?.statusCode;
    if (status === undefined) throw cause;
    if ([401, 403, 404].includes(status)) throw new RemoteRefused({ url: remote.url, status });
    throw new RemoteUnreachable({ url: remote.url, why: `the server answered ${status}` });
  }
}

/**
 * Follows a redirect of the first request for those after it (a POST that is redirected becomes a GET): to https, or to
 * another path of the same host. The credentials are never taken to another host.
 */
function following(remote: Remote, signal: AbortSignal): HttpClient {
  let from = "";
  let to = "";
  return {
    request: async (request) => {
      const url = from && request.url.startsWith(from) ? to + request.url.slice(from.length) : request.url;
      const response = await requestOnce(remote, { ...request, url }, signal);
      const at = url.indexOf("/info/refs");
      const moved = response.url.indexOf("/info/refs");
      if (response.url !== url && at > 0 && moved > 0) {
        if (new URL(response.url).hostname !== new URL(url).hostname)
          throw new RemoteUnreachable({
            url: remote.url,
            why: "it redirects to another host; name that one",
          });
        from = url.slice(0, at);
        to = response.url.slice(0, moved);
      }
      return response;
    },
  };
}

async function requestOnce(
  remote: Remote,
  { url, method = "GET", headers = {}, body }: GitHttpRequest,
  signal: AbortSignal,
): Promise<GitHttpResponse> {
  const idle = new AbortController();
  let timer = setTimeout(() => idle.abort(), remote.idle);
  const failed = (cause: unknown) =>
    new RemoteUnreachable({
      url: remote.url,
      why: idle.signal.aborted ? `no answer for ${remote.idle / 1000} s` : causeOf(cause),
    });
  try {
    const response = await fetch(url, {
      method,
      headers,
      body: body ? await collected(body) : null,
      signal: AbortSignal.any([signal, idle.signal]),
    });
    const more = async function* () {
      try {
        for await (const chunk of response.body ?? []) {
          clearTimeout(timer);
          timer = setTimeout(() => idle.abort(), remote.idle);
          yield chunk as Uint8Array;
        }
      } catch (cause) {
        throw failed(cause);
      } finally {
        clearTimeout(timer);
      }
    };
    return {
      url: response.url,
      method,
      statusCode: response.status,
      statusMessage: response.statusText,
      body: more(),
      headers: Object.fromEntries(response.headers),
    };
  } catch (cause) {
    clearTimeout(timer);
    throw failed(cause);
  }
}

async function collected(
  body: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
): Promise<Buffer<ArrayBuffer>> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of body) chunks.push(chunk);
  return Buffer.concat(chunks);
}

/** `fetch` says "fetch failed" and hides the reason (ECONNREFUSED, a certificate) in its cause. */
function causeOf(error: unknown): string {
  const cause = (error as { cause?: unknown }).cause;
  const code = (cause as NodeJS.ErrnoException | undefined)?.code;
  return code ?? messageOf(cause ?? error);
}
