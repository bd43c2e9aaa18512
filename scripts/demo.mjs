// make demo: a mesh of four nodes on this machine, a real push to it, and the change seen over HTTP.
import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative, resolve } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";

const top = fileURLToPath(new URL("..", import.meta.url));
const dir = resolve(process.argv[2] ?? join(top, ".mesh"));
const program = join(process.env.MESH_DIST ?? join(top, "dist"), "mesh.js");
const catalogue = join(dir, "catalogue.git");
const pages = ["http://127.0.0.11:18080/", "http://127.0.0.12:18080/"];

function say(text) {
  console.log(`\n== ${text}`);
}

/** Runs mesh with its output shown. Ends the demo where it fails. */
function mesh(...args) {
  console.log(`$ mesh ${args.join(" ")}`);
  const where = args[0] === "up" || args[0] === "down" ? [] : ["--context", join(dir, "context.json")];
  const { status } = spawnSync(process.execPath, [program, ...args, ...where], {
    stdio: "inherit",
    cwd: top,
  });
  if (status !== 0)
    throw new Error(`mesh ${args[0]} ended with exit code ${status}; logs are in ${join(dir, "logs")}`);
}

function git(where, ...args) {
  const identity = [
    "-c",
    "user.name=mesh demo",
    "-c",
    "user.email=demo@localhost",
    "-c",
    "commit.gpgsign=false",
  ];
  return execFileSync("git", [...identity, ...args], {
    cwd: where,
    encoding: "utf8",
    stdio: ["ignore", "pipe", "pipe"],
  });
}

async function get(url) {
  try {
    return (await (await fetch(url, { signal: AbortSignal.timeout(2_000) })).text()).trim();
  } catch {
    return null;
  }
}

/** Asks until the answer starts with `greeting`, for half a minute. */
async function answerOf(url, greeting) {
  let answer = null;
  for (const until = Date.now() + 30_000; Date.now() < until; await delay(100)) {
    answer = await get(url);
    if (answer?.startsWith(greeting)) return answer;
  }
  throw new Error(`${url}: expected "${greeting} …", got ${answer ?? "no answer"}`);
}

/** Commits another greeting in a clone and pushes it. */
function pushGreeting() {
  const work = mkdtempSync(join(tmpdir(), "mesh-demo-"));
  try {
    git(work, "clone", "-q", catalogue, "clone");
    const clone = join(work, "clone");
    const file = join(clone, "modules/web/module.json");
    const text = readFileSync(file, "utf8");
    const before = /"greeting": "([^"]*)"/.exec(text)?.[1] ?? "";
    const after = before === "Good day" ? "Hello again" : "Good day";
    writeFileSync(file, text.replace(`"greeting": "${before}"`, `"greeting": "${after}"`));
    git(clone, "commit", "-q", "-a", "-m", `Greet with "${after}"`);
    console.log(`$ git commit -am 'Greet with "${after}"' && git push`);
    console.log(
      git(clone, "show", "--format=", "--unified=0", "HEAD")
        .split("\n")
        .filter((line) => /^[+-] /.test(line))
        .join("\n"),
    );
    git(clone, "push", "-q", "origin", "HEAD:main");
    return { before, after };
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

async function demo() {
  say(
    "A mesh on this machine: Postgres, nats-server, a controller, and a host for each node of examples-repo",
  );
  mesh("up", "--catalogue", join(top, "examples-repo"), "--dir", dir, "--detach");
  mesh("plan", "latest", "--watch");
  for (const page of pages) console.log(`$ curl ${page}\n${await answerOf(page, "")}`);

  say("A change, pushed with git");
  const { after } = pushGreeting();

  say("Its plan, tier by tier");
  mesh("plan", "latest", "--watch");

  say("The changed service");
  for (const page of pages) console.log(`$ curl ${page}\n${await answerOf(page, after)}`);

  say("The whole mesh");
  mesh("status");
  const here = relative(process.cwd(), dir) || dir;
  console.log(`
It goes on running. Try next:

  alias mesh='node ${program}'${here === ".mesh" ? "" : `; export MESH_CONTEXT=${join(dir, "context.json")}`}
  mesh node web-1                        every resource of one node
  mesh logs web-1 web.server -f          what a process says
  mesh why web-1 web.server              why it is as it is
  curl ${pages[0]}
  git clone ${catalogue}   change something, push, mesh plan latest --watch

Stop it:       mesh down${here === ".mesh" ? "" : ` --dir ${here}`}
Remove it all: mesh down${here === ".mesh" ? "" : ` --dir ${here}`} --purge`);
}

try {
  await demo();
} catch (error) {
  console.error(`demo: ${error.message}`);
  process.exitCode = 1;
}
