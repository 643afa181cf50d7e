import { describe, expect, test } from "vitest";
import { encode } from "../encoding/encode.js";
import { fingerprintIn, fingerprintOf, normalizeMessage, withFingerprint } from "./fingerprint.js";

const error = (message: string, name = "Error") => ({ name, message });

describe("errors that are alike have the same fingerprint", () => {
  test.each([
    ["numbers", "card 4711 was declined", "card 12 was declined"],
    ["amounts", "1,200.50 is too much", "7 is too much"],
    [
      "UUIDs",
      "order 01a1eed2-da56-7110-8768-c91f35359af9 is gone",
      "order 01a1eed2-df7b-76d7-bb3c-8dee32a2fac1 is gone",
    ],
    ["hexadecimal ids", "commit 9f86d081884c7d65 failed", "commit 0a1b2c3d4e5f6071 failed"],
    ["quoted texts", 'no user "ada" here', 'no user "grace" here'],
    ["times", "late since 2026-01-31T09:00:00.000Z", "late since 2025-12-01 10:11:12"],
    ["addresses", "GET https://a.example/x?y=1 failed", "GET http://b.example failed"],
    ["mail addresses", "no mail to ada@example.com", "no mail to grace@example.org"],
    ["further lines", "broken\n  at line 1", "broken\n  at line 2"],
  ])("%s do not count", (_, first, second) => {
    expect(fingerprintOf(error(first), "charge")).toBe(fingerprintOf(error(second), "charge"));
  });
});

test("another step, class or wording is another error", () => {
  const fingerprints = [
    fingerprintOf(error("card declined"), "charge"),
    fingerprintOf(error("card declined"), "refund"),
    fingerprintOf(error("card declined"), null),
    fingerprintOf(error("card declined", "TypeError"), "charge"),
    fingerprintOf(error("card expired"), "charge"),
  ];
  expect(new Set(fingerprints).size).toBe(fingerprints.length);
});

test("words that look like hexadecimal numbers are kept", () => {
  expect(normalizeMessage("the facade was defaced")).toBe("the facade was defaced");
});

test("a message of any length is normalized in bounded time", () => {
  expect(normalizeMessage("a@".repeat(1_000_000)).length).toBeLessThanOrEqual(200);
});

test("the fingerprint is cut out of the beginning of an encoded text, whatever the text contains", () => {
  const fingerprint = fingerprintOf(error("x"), "charge");
  for (const value of [{ name: "Error" }, { at: new Date(0) }, { $pawl: "x" }, { fingerprint: "other" }]) {
    const { fingerprint: _, ...fields } = value as Record<string, unknown>;
    const text = encode(withFingerprint(fingerprint, fields), { label: "error" });
    expect(fingerprintIn(text)).toBe("$pawl" in fields ? null : fingerprint);
  }
  for (const text of [null, "", "17", '{"name":"fingerprint"}']) expect(fingerprintIn(text)).toBeNull();
});
