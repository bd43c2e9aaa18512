import fc from "fast-check";
import { expect, it } from "vitest";
import { canonicalJson, revisionOf } from "../../../src/declaration/canonical.ts";
import { checkDeclaration } from "../../../src/declaration/receive.ts";
import { verify } from "../../../src/declaration/sign.ts";
import { aBody, aSigner } from "../../support/declarations.ts";

const signer = aSigner();
function aDeclaration(node = "web-1") {
  const body = aBody(node);
  const unsigned = { revision: revisionOf(body), sequence: 3, commit: "c0ffee", tier: 2, body };
  return { ...unsigned, signature: signer.sign(unsigned) };
}
const check = (declaration: unknown, node = "web-1") =>
  checkDeclaration(JSON.stringify(declaration), { node, pinnedKey: signer.publicKey });

it("the same value with its keys in another order has the same canonical bytes, and they parse to the value", () => {
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      const text = canonicalJson(value);
      expect(canonicalJson(turned(value))).toBe(text);
      expect(JSON.parse(text)).toEqual(JSON.parse(JSON.stringify(value)));
    }),
  );
});

function turned(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(turned);
  if (value === null || typeof value !== "object") return value;
  const entries = Object.entries(value).reverse();
  return Object.fromEntries(entries.map(([key, member]) => [key, turned(member)]));
}

it("a signed declaration of the node is accepted", () => {
  expect(check(aDeclaration())).toMatchObject({ sequence: 3, body: { node: "web-1" } });
});

it("SEC-6: another node's declaration is refused although its signature is right", () => {
  expect(check(aDeclaration("web-2"))).toContain('it is for "web-2"');
});

it.each([
  ["unsigned", { signature: "" }, "not signed"],
  ["signed by another key", { signature: aSigner().sign(aDeclaration()) }, "pinned key"],
  ["with a raised sequence", { sequence: 4 }, "pinned key"],
  ["with another commit", { commit: "beef" }, "pinned key"],
  ["with a changed body", { body: { ...aBody("web-1"), mode: "observe" } }, "digest"],
  ["with an unknown key", { extra: 1 }, "another shape"],
])("a declaration %s is refused", (_, change, why) => {
  expect(check({ ...aDeclaration(), ...change })).toContain(why);
});

it("a malformed key or signature is no signature, and no crash", () => {
  expect(verify({ ...aDeclaration(), signature: "%%" }, signer.publicKey)).toBe(false);
  expect(verify(aDeclaration(), "no key")).toBe(false);
  expect(checkDeclaration("null", { node: "a", pinnedKey: null })).toContain("not for this node");
  expect(checkDeclaration("{", { node: "a", pinnedKey: null })).toContain("no JSON");
});
