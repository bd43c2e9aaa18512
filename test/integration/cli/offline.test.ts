import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { EXAMPLES, PROGRAMS, runMesh, shell } from "../../support/mesh-program.ts";

let dir: string;
let work: string;
const git = (...args: string[]) =>
  execFileSync("git", ["-c", "user.name=t", "-c", "user.email=t@t", ...args], { cwd: work, stdio: "pipe" });

beforeAll(() => {
  dir = mkdtempSync(join(tmpdir(), "mesh-cli-"));
  work = join(dir, "work");
  cpSync(EXAMPLES, work, { recursive: true });
  git("init", "-q", "-b", "main");
  git("add", "-A");
  git("commit", "-q", "-m", "one");
});
afterAll(() => rmSync(dir, { recursive: true, force: true }));

test("the example catalogue passes check", async () => {
  const ran = await runMesh(["check", EXAMPLES]);
  expect(ran).toMatchObject({ code: 0, stderr: "" });
  expect(ran.stdout).toContain("4 nodes, 10 modules");
});

test("a catalogue with problems makes check exit 1 with file, line and column, and as one document", async () => {
  const bad = join(dir, "bad");
  cpSync(EXAMPLES, bad, { recursive: true });
  writeFileSync(join(bad, "nodes/web-1.json"), '{\n  "adress": "127.0.0.11"\n}\n');
  const ran = await runMesh(["check", bad]);
  expect(ran.code).toBe(1);
  expect(ran.stdout).toMatch(/^nodes\/web-1\.json:2:3: .*adress/m);
  const json = await runMesh(["check", bad, "--json"]);
  expect(json.code).toBe(1);
  expect(JSON.parse(json.stdout).problems.length).toBeGreaterThan(0);
});

test("check lists what composing shows of the sound files beside what is wrong in the others", async () => {
  const bad = join(dir, "many");
  cpSync(EXAMPLES, bad, { recursive: true });
  writeFileSync(join(bad, "mesh.json"), '{ "nmae": "x" }');
  const module = (name: string, body: object) => {
    mkdirSync(join(bad, "modules", name));
    writeFileSync(join(bad, "modules", name, "module.json"), JSON.stringify({ name, ...body }));
  };
  const file = (id: string, content: string) => ({ id, type: "file", path: "/etc/twice", content });
  module("broken", { seats: { broken: { port: "http" } }, ports: { http: 1 }, typo: true });
  module("sound", {
    ports: { one: 7_000, two: 7_000 },
    resources: [file("first", "${seat:broken} ${seat:nobody} ${port:three}"), file("second", "")],
  });
  writeFileSync(join(bad, "nodes/more.json"), '{ "address": "127.0.0.99", "modules": ["sound", "broken"] }');
  const { code, stdout } = await runMesh(["check", bad]);
  expect(code).toBe(1);
  for (const found of ['unknown key "nmae"', 'unknown key "typo"', "${seat:nobody}", "${port:three}"])
    expect(stdout).toContain(found);
  expect(stdout).toContain("path /etc/twice has two owners");
  expect(stdout).toContain("port 7000 has two owners");
  // What a bad file holds is not held against the others.
  expect(stdout).not.toContain("${seat:broken}");
  expect(stdout).not.toMatch(/unknown module|not on this node/);
});

test("check of a URL says what it takes instead", async () => {
  const { code, stderr } = await runMesh(["check", "http://127.0.0.1:1/x.git"]);
  expect(code).toBe(1);
  expect(stderr).toContain(
    "a URL is not read here, clone it first; expected a folder or a Git repository on this machine",
  );
});

test("each program shows an example, and exits 2 on an option it does not know", async () => {
  for (const name of ["mesh", "mesh-host", "mesh-controller"]) {
    const program = `"${process.execPath}" "${join(PROGRAMS, `${name}.js`)}"`;
    expect((await shell(`${program} --help`)).stdout, name).toContain("Example:");
    expect(await shell(`${program} --nothing`), name).toMatchObject({ code: 2, stdout: "" });
    if (name !== "mesh-controller") continue;
    expect(await shell(`${program} serve --nothing`)).toMatchObject({ code: 2, stdout: "" });
  }
});

test("init makes a catalogue that passes check, and refuses a folder that is not empty", async () => {
  const made = join(dir, "made");
  expect(await runMesh(["init", made])).toMatchObject({ code: 0 });
  expect(await runMesh(["check", made])).toMatchObject({ code: 0 });
  const again = await runMesh(["init", made]);
  expect(again).toMatchObject({ code: 1, stdout: "" });
  expect(again.stderr).toContain("not empty");
});

test("preview of a change says what happens on which node, as text, JSON and markdown", async () => {
  const file = join(work, "modules/web/module.json");
  const before = readFileSync(file, "utf8");
  writeFileSync(file, before.replace('"greeting": "Hello"', '"greeting": "Moin"'));
  const text = await runMesh(["preview", work, "--against", "main"]);
  expect(text).toMatchObject({ code: 0, stderr: "" });
  expect(text.stdout).toContain("2 machines, 2 updates, 2 restarts");
  const json = JSON.parse((await runMesh(["preview", work, "--against", "main", "--json"])).stdout);
  expect(json).toMatchObject({ to: null, guard: [], confirm: null, problems: [] });
  expect(json.tiers[2].nodes.map((one: { node: string }) => one.node)).toEqual(["web-1", "web-2"]);
  const markdown = await runMesh(["preview", work, "--against", "main", "--markdown"]);
  expect(markdown.stdout).toContain("| web-1, web-2 | restart | `web.server` |");
  writeFileSync(file, before);
});

test("preview exits 3 where the guard would wait, and prints the line that confirms", async () => {
  const file = join(work, "nodes/worker-1.json");
  const before = readFileSync(file, "utf8");
  writeFileSync(file, before.replace('"address"', '"retire": true, "address"'));
  const ran = await runMesh(["preview", work, "--against", "HEAD"]);
  expect(ran.code).toBe(3);
  expect(ran.stdout).toMatch(/Mesh-Confirm: emptied worker-1/);
  writeFileSync(file, before);
});

test("an unknown command or flag is a usage error that names the nearest", async () => {
  const command = await runMesh(["statsu"]);
  expect(command).toMatchObject({ code: 2, stdout: "" });
  expect(command.stderr).toMatch(/statsu.*status/);
  const flag = await runMesh(["status", "--jsno"]);
  expect(flag).toMatchObject({ code: 2, stdout: "" });
  expect(flag.stderr).toMatch(/--jsno.*--json/);
  expect(flag.stderr.trim().split("\n")).toHaveLength(1);
});

test("every command has help with an example", async () => {
  const { stdout } = await runMesh(["--help"]);
  const commands = stdout
    .split("Commands:\n")[1]!
    .split("\n\n")[0]!
    .split("\n")
    .map((line) => line.trim().split(" ")[0]!)
    .filter((name) => name !== "help");
  expect(commands).toContain("status");
  for (const name of commands) {
    const help = await runMesh([name, "--help"]);
    expect(help, name).toMatchObject({ code: 0, stderr: "" });
    expect(help.stdout, name).toMatch(/Examples?:\n {2}\$ /);
  }
}, 60_000);

test("schemas are valid JSON that an editor can use, also through a pipe", async () => {
  const ran = await shell("mesh schema module | cat");
  const schema = JSON.parse(ran.stdout);
  expect(schema.properties.resources).toBeDefined();
  expect(schema.additionalProperties).toBe(false);
});

test("completion knows commands and flags in each shell", async () => {
  for (const name of ["bash", "zsh", "fish"]) {
    const ran = await runMesh(["completion", name]);
    expect(ran.code).toBe(0);
    expect(ran.stdout).toMatch(/status/);
    expect(ran.stdout).toMatch(/--?l? ?purge|--purge/);
  }
  const tried = await shell(
    'source <(mesh completion bash); COMP_WORDS=(mesh sta); COMP_CWORD=1; _mesh; echo "${COMPREPLY[@]}"',
  );
  expect(tried.stdout.trim()).toBe("status");
});

test("without a mesh a command says where it looked and exits 1", async () => {
  const ran = await runMesh(["status"], { cwd: dir, env: { HOME: dir } });
  expect(ran).toMatchObject({ code: 1, stdout: "" });
  expect(ran.stderr.trim().split("\n")).toHaveLength(1);
  expect(ran.stderr).toContain("mesh up");
});
