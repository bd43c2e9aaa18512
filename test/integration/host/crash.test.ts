import { existsSync, mkdirSync, readdirSync, readFileSync, truncateSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { eventually } from "../../support/eventually.ts";
import { aDeclarationOf, aDirectory, aFile, aService, hostProgram } from "../../support/host.ts";

let host: Awaited<ReturnType<typeof hostProgram>>;
beforeEach(async () => {
  host = await hostProgram();
});
afterEach(() => host.end());

const put = (path: string, text: string) => {
  mkdirSync(dirname(host.real(path)), { recursive: true });
  writeFileSync(host.real(path), text);
};
const files = (dir: string) => (existsSync(host.real(dir)) ? readdirSync(host.real(dir)).sort() : []);

/** Pids of every process that runs with this marker among its arguments, apart from parents. */
function copiesOf(marker: string): number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => {
      try {
        const args = readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0");
        return args[0] === "sleep" && args[1] === marker;
      } catch {
        return false;
      }
    })
    .map(Number);
}

const POINTS = [
  "state-before-save",
  "state-before-save#2",
  "state-after-save",
  "state-after-save#2",
  "file-written",
  "file-before-rename",
  "file-renamed",
  "file-written#2",
  "supervision:intent",
  "supervision:spawned",
];

test.each(POINTS)(
  "killed at %s, the next apply ends right, and what was made is still pruned",
  async (point) => {
    const marker = String(70_000 + POINTS.indexOf(point));
    const declaration = aDeclarationOf([
      aDirectory("web.dir", "/srv/web"),
      aFile("web.conf", "/srv/web/conf", "c"),
      aFile("web.more", "/srv/web/more", "m"),
      aService("web.server", ["sleep", marker]),
    ]);
    expect(host.apply(declaration, { MESH_FAULT: point })).toMatchObject({ signal: "SIGKILL" });
    expect(host.apply(declaration)).toMatchObject({ code: 0, err: "" });
    expect(files("/srv/web")).toEqual(["conf", "more"]);
    await eventually(() => expect(copiesOf(marker)).toHaveLength(1));
    expect(host.apply(declaration).out).toBe("nothing to do\n");
    expect(host.apply(aDeclarationOf([], { sequence: 2 }))).toMatchObject({ code: 0 });
    expect(files("/srv")).toEqual([]);
    await eventually(() => expect(copiesOf(marker)).toHaveLength(0));
  },
);

const DAMAGES: Record<string, (file: string) => void> = {
  "is empty": (file) => truncateSync(file, 0),
  "is cut in half": (file) =>
    writeFileSync(file, readFileSync(file, "utf8").slice(0, readFileSync(file).length / 2)),
  "has another shape": (file) => writeFileSync(file, '{"processes":["a"],"version":7}'),
};

test.each(
  Object.keys(DAMAGES).flatMap(
    (damage) =>
      [
        [damage, false],
        [damage, true],
      ] as const,
  ),
)(
  "FIL-4: with a state file that %s (and the copy before it: %s) nothing foreign goes, nothing runs twice, what was owned is pruned later",
  async (damage, both) => {
    const marker = String(71_000 + Object.keys(DAMAGES).indexOf(damage) * 2 + Number(both));
    put("/srv/web/foreign", "f");
    const declaration = aDeclarationOf([
      aFile("web.conf", "/srv/web/conf", "c"),
      aFile("base.conf", "/etc/base", "b"),
      aService("web.server", ["sleep", marker]),
    ]);
    host.apply(declaration);
    await eventually(() => expect(copiesOf(marker)).toHaveLength(1));
    const [pid] = copiesOf(marker);
    DAMAGES[damage]!(join(host.stateDir, "state.json"));
    if (both) DAMAGES[damage]!(join(host.stateDir, "state.json.prev"));
    const again = host.apply(declaration);
    expect(again.code).toBe(0);
    expect(again.out).toContain("state-set-aside");
    expect(readdirSync(host.stateDir)).toContain("state.json.bad-1");
    expect(copiesOf(marker)).toEqual([pid]);
    host.apply(aDeclarationOf([aFile("base.conf", "/etc/base", "b")], { sequence: 2 }));
    expect(files("/srv/web")).toEqual(["foreign"]);
    expect(files("/etc")).toEqual(["base"]);
    await eventually(() => expect(copiesOf(marker)).toHaveLength(0));
  },
);

test("a second host over the same state is refused and names the first one's pid; a killed one blocks nobody", async () => {
  host.apply(aDeclarationOf([aFile("web.conf", "/etc/web", "w")]));
  const first = host.run();
  await eventually(() => host.status().pid === first.child.pid);
  const second = host.apply(aDeclarationOf([]));
  expect(second.code).toBe(1);
  expect(second.err).toContain(`pid ${first.child.pid}`);
  first.child.kill("SIGKILL");
  await first.ended;
  expect(host.apply(aDeclarationOf([aFile("web.conf", "/etc/web", "w")]))).toMatchObject({ code: 0 });
});
