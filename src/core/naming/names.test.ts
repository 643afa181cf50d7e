import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { InvalidInputError } from "../errors/errors.js";
import { checkName } from "./names.js";

describe("checkName", () => {
  test.each(["send_welcome", "a", "a b", "50% off", 'it\'s "quoted"', "a/b/c", "😀", "ß", "order:42", "__proto__"])(
    "accepts %s",
    (name) => {
      expect(checkName("step", name)).toBe(name);
    },
  );

  test.each<[unknown, RegExp]>([
    ["", /The step name "" must not be empty/],
    [42, /The step name number must be a string/],
    [undefined, /undefined must be a string/],
    [null, /must be a string/],
    [{}, /must be a string/],
    ["a\u0000b", /"a\\u0000b" contains a control character/],
    ["line\nbreak", /control character/],
    ["\u007f", /control character/],
    ["\u0085x", /control character/],
    ["\ud800", /half of a surrogate pair/],
    ["a\udc00b", /half of a surrogate pair/],
    [" a", /begin or end with a space/],
    ["a ", /begin or end with a space/],
    ["a\u00a0", /begin or end with a space/],
    ["send#2", /contains "#", which Pawl adds itself/],
    ["x".repeat(201), /is 201 bytes; the limit is 200/],
    ["é".repeat(101), /is 202 bytes/],
  ])("refuses %o", (name, message) => {
    expect(() => checkName("step", name)).toThrow(InvalidInputError);
    expect(() => checkName("step", name)).toThrow(message);
  });

  test("measures bytes, not characters", () => {
    expect(checkName("tag", "x".repeat(200))).toHaveLength(200);
    expect(checkName("tag", "é".repeat(100))).toHaveLength(100);
    expect(checkName("tag", "abc", 3)).toBe("abc");
    expect(() => checkName("tag", "abcd", 3)).toThrow(/The tag "abcd" is 4 bytes; the limit is 3/);
  });

  test('refuses "#" in names of steps only', () => {
    expect(checkName("workflow", "a#2")).toBe("a#2");
    expect(checkName("idempotency key", "a#2")).toBe("a#2");
  });

  test("shortens a long name in the error message", () => {
    try {
      checkName("queue", "x".repeat(1_000_000));
      expect.unreachable();
    } catch (error) {
      expect((error as Error).message.length).toBeLessThan(200);
    }
  });

  test("accepts only names that survive UTF-8 and are short enough", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary", maxLength: 250 }), (name) => {
        try {
          expect(checkName("signal", name)).toBe(name);
        } catch (error) {
          expect(error).toBeInstanceOf(InvalidInputError);
          return;
        }
        expect(Buffer.from(name).toString()).toBe(name);
        expect(Buffer.byteLength(name)).toBeLessThanOrEqual(200);
      }),
    );
  });
});
