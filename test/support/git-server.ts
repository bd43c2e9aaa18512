import { spawn } from "node:child_process";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { git } from "./repository.ts";

/** A smart HTTP server over one folder of repositories, by `git http-backend`, that asks for a token; below /moved/ it redirects to where it is. */
export interface GitServer {
  url(repository: string): string;
  /** What comes next: "serve", "hang" (takes the request, never answers), or a status to refuse with. */
  mood: "serve" | "hang" | number;
  requests: number;
  close(): Promise<void>;
}

export async function startGitServer(root: string, token: string): Promise<GitServer> {
  const server = createServer((request, response) => {
    state.requests++;
    if (state.mood === "hang") return;
    const password = Buffer.from((request.headers.authorization ?? "").replace(/^Basic /, ""), "base64")
      .toString()
      .split(":")[1];
    if (state.mood !== "serve" || password !== token) {
      response.writeHead(state.mood === "serve" ? 401 : Number(state.mood)).end();
      return;
    }
    const moved = /^\/moved\/(.*)$/.exec(request.url ?? "");
    if (moved) {
      response.writeHead(301, { location: `/${moved[1]}` }).end();
      return;
    }
    serve(root, request, response);
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  const { port } = server.address() as AddressInfo;
  const state: GitServer = {
    url: (repository) => `http://127.0.0.1:${port}/${repository}`,
    mood: "serve",
    requests: 0,
    close: () =>
      new Promise((done) => {
        server.close(() => done());
        server.closeAllConnections();
      }),
  };
  return state;
}

function serve(root: string, request: IncomingMessage, response: ServerResponse): void {
  const url = new URL(request.url ?? "/", "http://x");
  const backend = spawn(`${git(root, "--exec-path")}/git-http-backend`, {
    env: {
      ...process.env,
      GIT_PROJECT_ROOT: root,
      GIT_HTTP_EXPORT_ALL: "1",
      PATH_INFO: url.pathname,
      QUERY_STRING: url.search.slice(1),
      REQUEST_METHOD: request.method ?? "GET",
      CONTENT_TYPE: request.headers["content-type"] ?? "",
      GIT_PROTOCOL: String(request.headers["git-protocol"] ?? ""),
      REMOTE_ADDR: "127.0.0.1",
    },
    stdio: ["pipe", "pipe", "ignore"],
  });
  request.pipe(backend.stdin);
  backend.stdin.on("error", () => {});
  const chunks: Buffer[] = [];
  backend.stdout.on("data", (chunk: Buffer) => chunks.push(chunk));
  backend.on("close", () => {
    const all = Buffer.concat(chunks);
    const end = all.indexOf("\r\n\r\n");
    const headers = all
      .toString("latin1", 0, end)
      .split("\r\n")
      .map((line) => line.split(/: */, 2) as [string, string]);
    const status = headers.find(([name]) => name === "Status")?.[1];
    response.writeHead(status ? Number.parseInt(status, 10) : 200, Object.fromEntries(headers));
    response.end(all.subarray(end + 4));
  });
}
