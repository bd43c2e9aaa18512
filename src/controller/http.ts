import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";

/** What the HTTP side asks of the controller. `ready` says why not, in one word or sentence. */
export interface Health {
  ready(): { ok: boolean; text: string };
}

export interface HttpServer {
  /** "http://127.0.0.1:8080" */
  url: string;
  close(): Promise<void>;
}

/**
 * Serves /healthz (200 while the process can answer) and /readyz (200 with `active` or `standby`, 503 with the reason).
 * Where the wanted port is taken (a second controller on one machine), takes a free one.
 */
export async function serveHttp(at: { host: string; port: number }, health: Health): Promise<HttpServer> {
  const server = createServer((request, response) => {
    const reply = (status: number, text: string) => {
      response.writeHead(status, {
        "content-type": "text/plain; charset=utf-8",
        "cache-control": "no-store",
      });
      response.end(`${text}\n`);
    };
    const path = (request.url ?? "/").split("?")[0];
    if (request.method !== "GET" && request.method !== "HEAD") return reply(405, "GET only");
    if (path === "/healthz") return reply(200, "ok");
    if (path === "/readyz") {
      const { ok, text } = health.ready();
      return reply(ok ? 200 : 503, text);
    }
    return reply(404, "not found; there are /healthz and /readyz");
  });
  server.requestTimeout = 10_000;
  await listen(server, at.host, at.port).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== "EADDRINUSE") throw error;
    return listen(server, at.host, 0);
  });
  const { port } = server.address() as AddressInfo;
  const host = at.host.includes(":") ? `[${at.host}]` : at.host;
  return {
    url: `http://${host}:${port}`,
    close: () =>
      new Promise((done) => {
        server.close(() => done());
        server.closeAllConnections();
      }),
  };
}

function listen(server: Server, host: string, port: number): Promise<void> {
  return new Promise((done, fail) => {
    server.once("error", fail);
    server.listen(port, host, () => {
      server.off("error", fail);
      done();
    });
  });
}
