import { createHash } from "node:crypto";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { revisionOf } from "../../../src/declaration/canonical.ts";
import { renderText } from "../../../src/resources/text.ts";
import { aFile, aProcess, bodyOf, composed, problemsOf, resource } from "./support.ts";

const real = (path: string) => `/root${path}`;

describe("placeholders", () => {
  it("COM-2: a value with $&, quotes, backslash and newline reaches environment and file to the byte", () => {
    const value = 'p$&q$1$$"\\\n';
    const body = bodyOf(
      {
        nodes: { a: { modules: ["m"] } },
        modules: {
          m: {
            settings: { secret: value, port: "${port:web}" },
            ports: { web: 80 },
            resources: [
              aProcess("p", { env: { V: "${setting:secret}", W: "${setting:port}" } }),
              aFile("f", "/etc/f", "${setting:secret}${setting:port}"),
            ],
          },
        },
      },
      "a",
    );
    expect(resource(body, "m.p", "process").env).toEqual({ V: value, W: "${port:web}" });
    expect(resource(body, "m.f", "file").body).toEqual({ text: `${value}\${port:web}` });
    expect(JSON.parse(JSON.stringify(body))).toEqual(body);
  });

  it("COM-2: no value is filled a second time, whatever bytes it holds", () => {
    const piece = fc.oneof(
      fc.constantFrom("$", "${", "}", "$${", "${port:web}", "${path:f}", "${state}", '"', "\\", "\n", "$&"),
      fc.string({ unit: "grapheme", maxLength: 5 }),
    );
    const text = fc.array(piece, { maxLength: 6 }).map((parts) => parts.join("").replaceAll("\u0000", ""));
    fc.assert(
      fc.property(text, text, (value, name) => {
        const body = bodyOf(
          {
            mesh: { settings: { m: { v: value } } },
            nodes: { a: { modules: ["m"] } },
            modules: {
              m: {
                settings: { v: "", w: name },
                ports: { web: 80 },
                state: {},
                resources: [
                  aProcess("p", {
                    env: { V: "${setting:v}|${path:f}|${setting:w}" },
                    command: ["${setting:v}"],
                  }),
                  aFile("f", "/etc/f", ["${setting:v}${setting:w}"]),
                ],
              },
            },
          },
          "a",
        );
        const { env, command } = resource(body, "m.p", "process");
        expect(renderText(env.V!, real)).toBe(`${value}|/root/etc/f|${name}`);
        expect(command).toEqual([value]);
        expect(resource(body, "m.f", "file").body).toEqual({ text: `${value}${name}\n` });
      }),
    );
  });

  it("keeps what is not a placeholder, and writes $${ as ${", () => {
    const body = bodyOf(
      {
        nodes: { a: { modules: ["m"] } },
        modules: {
          m: {
            resources: [aFile("f", "/f", "$${port:x} ${HOME} ${PORT:-80} $x ${} ${port} ${node} $$ $${")],
          },
        },
      },
      "a",
    );
    expect(resource(body, "m.f", "file").body).toEqual({
      text: "${port:x} ${HOME} ${PORT:-80} $x ${} ${port} ${node} $$ ${",
    });
  });

  it("names module, resource, field and the known names for an unknown name", () => {
    const [problem] = problemsOf({
      nodes: { a: { modules: ["m"] } },
      modules: { m: { ports: { http: 80 }, resources: [aProcess("p", { env: { P: "${port:htp}" } })] } },
    });
    expect(problem).toMatch(/module m, resource p, env\.P: \$\{port:htp\}.*known: http; did you mean http\?/);
  });

  it.each([
    "${setting:x}",
    "${seat:x}",
    "${path:x}",
    "${node:x}",
    "${module:x}",
    "${state}",
    "${secret:x}",
    "${bundle:x}",
  ])("refuses %s when there is no such thing", (text) => {
    const parts = {
      nodes: { a: { modules: ["m"] } },
      modules: { m: { resources: [aFile("f", "/f", text)] } },
    };
    expect(problemsOf(parts)).toHaveLength(1);
  });

  it("refuses a placeholder in a path, where none is filled", () => {
    const parts = {
      nodes: { a: { modules: ["m"] } },
      modules: { m: { resources: [aFile("f", "/etc/${node:name}")] } },
    };
    expect(problemsOf(parts)[0]).toMatch(/no placeholder is filled here/);
  });

  it("puts an IPv6 address in brackets before a port, and bare elsewhere", () => {
    const body = bodyOf(
      {
        nodes: { a: { address: "fd00::1", modules: ["m"] } },
        modules: {
          m: {
            ports: { web: 80 },
            seats: { s: { port: "web" } },
            resources: [
              aProcess("p", {
                command: [
                  "./s",
                  "${node:address}",
                  "${node:address}:${port:web}",
                  "[${node:address}]:1",
                  "${seat:s}",
                ],
              }),
            ],
          },
        },
      },
      "a",
    );
    const { command } = resource(body, "m.p", "process");
    expect(command).toEqual(["./s", "fd00::1", "[fd00::1]:80", "[fd00::1]:1", "[fd00::1]:80"]);
  });

  it("sends a body of more than 8 KiB through the object store, and smaller bytes that are no text as base64", () => {
    const large = "ü".repeat(5000);
    const composition = composed({
      nodes: { a: { modules: ["m"] } },
      modules: {
        m: {
          settings: { v: large },
          resources: [
            aFile("large", "/large", "${setting:v}"),
            { id: "bin", type: "file", path: "/bin1", source: "bin" },
            { id: "text", type: "file", path: "/text", source: "text" },
            { id: "big", type: "file", path: "/big", source: "big" },
          ],
        },
      },
      sources: { m: { bin: Buffer.from([0xff, 0x00]), text: "\ufeffa ${port:x}", big: "y".repeat(9000) } },
    });
    const node = composition.nodes.get("a")!;
    const sha = (text: string) => createHash("sha256").update(text).digest("hex");
    expect(resource(node.body, "m.large", "file").body).toEqual({ object: sha(large), size: 10_000 });
    expect(resource(node.body, "m.bin", "file").body).toEqual({ base64: "/wA=" });
    expect(resource(node.body, "m.text", "file").body).toEqual({ text: "\ufeffa ${port:x}" });
    expect([...node.objects.keys()].sort()).toEqual([sha(large), sha("y".repeat(9000))].sort());
    expect(node.objects.get(sha(large))?.bytes?.toString()).toBe(large);
    expect(revisionOf(node.body)).toBe(node.revision);
  });
});
