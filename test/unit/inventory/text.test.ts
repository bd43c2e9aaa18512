import fc from "fast-check";
import { expect, test } from "vitest";
import { storable, storableJson } from "../../../src/inventory/text.ts";

const anyText = fc.string({
  unit: fc.oneof(
    fc.constantFrom("\u0000", "\ud800", "\udfff", "\\", "u0000", "\\u0000", "\ud83d\ude00", '"', "\n"),
    fc.string({ unit: "binary", minLength: 1, maxLength: 1 }),
  ),
});

test("PLN-4: JSON comes back as it was, but for zero bytes and lone surrogates", () => {
  fc.assert(
    fc.property(anyText, anyText, (key, value) => {
      const clean = (text: string) => Buffer.from(text.replaceAll("\u0000", "\ufffd")).toString();
      const back = JSON.parse(storableJson({ list: [value], [`k${key}`]: value }));
      expect(back).toEqual({ list: [clean(value)], [`k${clean(key)}`]: clean(value) });
      expect(storableJson({ [key]: value })).not.toMatch(/(^|[^\\])(\\\\)*\\u(0000|d[89a-f])/);
      expect(storable(value)).not.toContain("\u0000");
    }),
  );
});
