import { type ExecFileSyncOptionsWithStringEncoding, execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";

const IDENTITY = ["-c", "user.name=Ada", "-c", "user.email=ada@example.org", "-c", "init.defaultBranch=main"];

/** Runs git and returns what it printed, trimmed. */
export function git(cwd: string, ...args: string[]): string {
  const options: ExecFileSyncOptionsWithStringEncoding = {
    cwd,
    encoding: "utf8",
    stdio: ["ignore", "pipe", "pipe"],
  };
  return execFileSync("git", [...IDENTITY, ...args], options).trim();
}

/** A bare repository with a work tree that pushes to it; both in one temporary folder. */
export class Repository {
  readonly top = mkdtempSync(join(tmpdir(), "mesh-repository-"));
  readonly bare = join(this.top, "catalogue.git");
  readonly work = join(this.top, "work");

  constructor() {
    git(this.top, "init", "-q", "--bare", this.bare);
    git(this.top, "init", "-q", this.work);
    git(this.work, "remote", "add", "origin", this.bare);
  }

  /** Writes files into the work tree; null removes one. */
  write(files: Record<string, string | Buffer | object | null>): void {
    for (const [path, body] of Object.entries(files)) {
      const file = join(this.work, path);
      if (body === null) {
        rmSync(file, { recursive: true, force: true });
        continue;
      }
      mkdirSync(dirname(file), { recursive: true });
      writeFileSync(
        file,
        typeof body === "string" || Buffer.isBuffer(body) ? body : `${JSON.stringify(body, null, 2)}\n`,
      );
    }
  }

  /** Commits everything in the work tree and returns the commit. */
  commit(message = "Change"): string {
    git(this.work, "add", "-A");
    git(this.work, "commit", "-q", "--allow-empty", "-m", message);
    return git(this.work, "rev-parse", "HEAD");
  }

  /** Commits and pushes main. */
  push(files: Record<string, string | Buffer | object | null> = {}, message = "Change"): string {
    this.write(files);
    const commit = this.commit(message);
    git(this.work, "push", "-q", "--force", "origin", "HEAD:refs/heads/main");
    return commit;
  }

  remove(): void {
    rmSync(this.top, { recursive: true, force: true });
  }
}

/** A small valid catalogue: one module with a file, a group and two nodes. */
export function catalogueFiles(): Record<string, object | string> {
  return {
    "mesh.json": { name: "mesh" },
    "groups/all.json": { modules: ["base"] },
    "nodes/web-1.json": { address: "127.0.0.11", labels: { role: "web" }, modules: ["web"] },
    "nodes/web-2.json": { address: "127.0.0.12", modules: ["web"], settings: { web: { greeting: "hi" } } },
    "modules/base/module.json": {
      name: "base",
      tier: 0,
      resources: [{ id: "motd", type: "file", path: "/etc/motd", source: "files/motd" }],
    },
    "modules/base/files/motd": "welcome\n",
    "modules/web/module.json": {
      name: "web",
      requires: ["base"],
      ports: { http: 8080 },
      seats: { greeter: { port: "http" } },
      settings: { greeting: "hello", workers: { type: "int", default: 2 } },
      resources: [
        { type: "user", name: "web" },
        { id: "config", type: "file", path: "/etc/web.conf", content: ["port = ${port:http}"] },
        {
          id: "server",
          type: "process",
          name: "web",
          command: ["./serve"],
          user: "web",
          restartOn: ["config", "base.motd"],
        },
      ],
    },
  };
}
