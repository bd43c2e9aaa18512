import { spawnSync } from "node:child_process";
import {
  chmodSync,
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { aDeclarationOf, aDirectory, aFile, aUser, hostProgram, modeOf, treeOf } from "../../support/host.ts";

let host: Awaited<ReturnType<typeof hostProgram>>;
beforeAll(async () => {
  host = await hostProgram();
});
afterAll(() => host.end());
beforeEach(() => rmSync(host.root, { recursive: true, force: true }));

const put = (path: string, text: string, mode = 0o644) => {
  mkdirSync(dirname(host.real(path)), { recursive: true });
  writeFileSync(host.real(path), text);
  chmodSync(host.real(path), mode);
};
const text = (path: string) => readFileSync(host.real(path), "utf8");

test("FIL-1: exact modes under umask 077, a mode-only change applied, and a second apply that does nothing", () => {
  put("/etc/web/secret", "s", 0o644);
  const declaration = aDeclarationOf([
    aDirectory("web.shared", "/srv/shared", { mode: "2775" }),
    aFile("web.conf", "/srv/shared/deep/web.conf", "x", { mode: "0664" }),
    aFile("web.secret", "/etc/web/secret", "s", { mode: "0600" }),
    aFile("web.read", "/etc/web/read", "r", { mode: "0400" }),
  ]);
  expect(host.apply(declaration)).toMatchObject({ code: 0, err: "" });
  expect(modeOf(host.real("/srv"))).toBe("0755");
  expect(modeOf(host.real("/srv/shared"))).toBe("2775");
  expect(modeOf(host.real("/srv/shared/deep"))).toMatch(/^2?0?755$|^0755$/);
  expect(modeOf(host.real("/srv/shared/deep/web.conf"))).toBe("0664");
  expect(modeOf(host.real("/etc/web/secret"))).toBe("0600");
  expect(modeOf(host.real("/etc/web/read"))).toBe("0400");
  const again = host.apply(declaration);
  expect(again).toMatchObject({ code: 0, out: "nothing to do\n" });
});

test("--noop prints what would change and changes nothing, before the first apply and after it", () => {
  put("/etc/web.conf", "old");
  const declaration = aDeclarationOf([
    aFile("web.conf", "/etc/web.conf", "new"),
    aFile("web.more", "/etc/more", "m"),
    aUser("web.user", "web"),
  ]);
  const before = treeOf(host.root);
  const looked = host.apply(declaration, {}, "--noop");
  expect(looked.code).toBe(0);
  expect(looked.out).toContain("update  web.conf: content");
  expect(looked.out).toContain("add     web.more");
  expect(treeOf(host.root)).toEqual(before);
  host.apply(declaration);
  const applied = treeOf(host.root);
  expect(host.apply(declaration, {}, "--noop").out).toBe("nothing to do\n");
  expect(host.apply(aDeclarationOf([aFile("web.more", "/etc/more", "n")]), {}, "--noop").out).toContain(
    "remove  web.conf",
  );
  expect(treeOf(host.root)).toEqual(applied);
});

test("refuses links in the path, links as the target and files with a second name, and goes on with the rest", () => {
  put("/outside/victim", "v");
  mkdirSync(host.real("/etc"), { recursive: true });
  symlinkSync(host.real("/outside"), host.real("/etc/linked"));
  symlinkSync(host.real("/outside/victim"), host.real("/etc/link"));
  linkSync(host.real("/outside/victim"), host.real("/etc/hard"));
  const ran = host.apply(
    aDeclarationOf([
      aFile("a.parent", "/etc/linked/new", "x"),
      aFile("b.target", "/etc/link", "x"),
      aFile("c.hard", "/etc/hard", "x"),
      aDirectory("d.dir", "/etc/linked"),
      aFile("e.fine", "/etc/fine", "x"),
    ]),
  );
  expect(ran.code).toBe(1);
  expect(ran.err).toMatch(/a\.parent: .*"linked" is a symbolic link to .*declare the path behind/);
  expect(ran.err).toMatch(/b\.target: .*symbolic link/);
  expect(ran.err).toMatch(/c\.hard: .*hard link \(2 names/);
  expect(ran.err).toMatch(/d\.dir: .*symbolic link/);
  expect(text("/outside/victim")).toBe("v");
  expect(readdirSync(host.real("/outside"))).toEqual(["victim"]);
  expect(text("/etc/fine")).toBe("x");
});

test("a failure stays in its module: the rest of it and what requires it are skipped with the cause, others go on", () => {
  put("/etc/base", "a file where a folder is needed");
  const ran = host.apply(
    aDeclarationOf(
      [
        aFile("base.first", "/etc/first", "1"),
        aFile("base.bad", "/etc/base/bad", "2"),
        aFile("base.rest", "/etc/rest", "3"),
        aFile("web.conf", "/etc/web", "4"),
        aFile("other.conf", "/etc/other", "5"),
      ],
      { requires: { web: ["base"] } },
    ),
  );
  expect(ran.code).toBe(1);
  expect(ran.err).toMatch(/base\.bad: .*is not a directory/);
  expect(ran.err).toMatch(/skipped {2}base\.rest: base\.bad failed/);
  expect(ran.err).toMatch(/skipped {2}web\.conf: base\.bad failed/);
  expect(existsSync(host.real("/etc/other"))).toBe(true);
  expect(existsSync(host.real("/etc/web"))).toBe(false);
  expect(host.status().outcome).toBe("waiting");
});

test("prunes what it made with the folders made on the way, keeps a copy of what was changed, leaves what is not empty", () => {
  put("/var/kept/foreign", "f");
  host.apply(
    aDeclarationOf([
      aFile("web.a", "/opt/web/deep/a", "a"),
      aFile("web.b", "/opt/web/b", "b"),
      aDirectory("web.dir", "/var/made"),
      aDirectory("web.adopted", "/var/kept"),
    ]),
  );
  put("/opt/web/b", "changed by hand");
  put("/var/made/foreign", "f");
  const ran = host.apply(aDeclarationOf([aFile("other.x", "/etc/x", "x")], { sequence: 2 }));
  expect(ran.code).toBe(0);
  expect(existsSync(host.real("/opt"))).toBe(false);
  expect(text("/var/made/foreign")).toBe("f");
  expect(text("/var/kept/foreign")).toBe("f");
  const backups = readdirSync(join(host.stateDir, "backups"));
  expect(backups).toHaveLength(1);
  expect(readFileSync(join(host.stateDir, "backups", backups[0]!), "utf8")).toBe("changed by hand");
  const left = host.status().resources.filter((r: { state: string }) => r.state === "kept");
  expect(left.map((r: { id: string }) => r.id).sort()).toEqual(["web.adopted", "web.b", "web.dir"]);
  expect(host.apply(aDeclarationOf([aFile("other.x", "/etc/x", "x")], { sequence: 2 })).out).toBe(
    "nothing to do\n",
  );
});

test("a renamed id with the same path, and a moved path with the same id, lose nothing", () => {
  host.apply(aDeclarationOf([aFile("web.conf", "/etc/web", "w"), aFile("web.old", "/etc/old", "o")]));
  const inode = lstatSync(host.real("/etc/web")).ino;
  host.apply(
    aDeclarationOf([aFile("site.conf", "/etc/web", "w"), aFile("web.old", "/etc/new", "o")], { sequence: 2 }),
  );
  expect(lstatSync(host.real("/etc/web")).ino).toBe(inode);
  expect(existsSync(host.real("/etc/old"))).toBe(false);
  expect(text("/etc/new")).toBe("o");
});

test("keeps a copy of a foreign file before it is overwritten for the first time", () => {
  put("/etc/web", "precious");
  host.apply(aDeclarationOf([aFile("web.conf", "/etc/web", "mine")]));
  const [name] = readdirSync(join(host.stateDir, "backups"));
  expect(readFileSync(join(host.stateDir, "backups", name!), "utf8")).toBe("precious");
  expect(modeOf(join(host.stateDir, "backups", name!))).toBe("0600");
});

test("a value survives byte for byte, with the host's references filled once", () => {
  const odd = 'p$&q$1$$ "\\\n${path:web.conf} ${port:web} ü';
  const body = { text: [odd, { path: "/etc/web" }] };
  host.apply(aDeclarationOf([aFile("web.conf", "/etc/web", "", { body })]));
  expect(text("/etc/web")).toBe(odd + host.real("/etc/web"));
});

const mounted = (path: string, ...options: string[]) =>
  spawnSync("mount", ["-t", "tmpfs", ...options, "mesh-test", path]).status === 0;

test.runIf(process.getuid?.() === 0)(
  "a full disk and a read-only one are reported with their cause, nothing half-written stays, the rest goes on",
  ({ skip }) => {
    const full = host.real("/full");
    const locked = host.real("/locked");
    for (const dir of [full, locked]) mkdirSync(dir, { recursive: true });
    if (!mounted(full, "-o", "size=64k")) skip("may not mount here");
    try {
      mounted(locked, "-o", "ro");
      const ran = host.apply(
        aDeclarationOf([
          aFile("a.big", "/full/big", "x".repeat(200_000)),
          aFile("b.locked", "/locked/x", "x"),
          aFile("c.fine", "/etc/fine", "x"),
        ]),
      );
      expect(ran.code).toBe(1);
      expect(ran.err).toMatch(/a\.big: .*no space left on the file system; free some \(ENOSPC\)/);
      expect(ran.err).toMatch(/b\.locked: .*read-only.*\(EROFS\)/);
      expect(readdirSync(full)).toEqual([]);
      expect(text("/etc/fine")).toBe("x");
    } finally {
      for (const dir of [full, locked]) spawnSync("umount", [dir]);
    }
  },
);
