import { expect, test } from "vitest";
import { PayloadWriter, toPlainJson } from "./payload-writer.js";

const rules = { redact: null, user: "ada", canSee: true, isPlain: false, maxBytes: null };
const about = { kind: "input", runId: "r1", workflow: "order" } as const;

test("plain values are written as JSON, others as in the log", () => {
  const writer = new PayloadWriter(rules);
  expect(writer.value({ a: [1, "x", null] }, about)).toEqual({ a: [1, "x", null] });
  expect(writer.value(new Date(0), about)).toEqual({ $pawl: "Date", v: "1970-01-01T00:00:00.000Z" });
  expect(writer.value({ $pawl: "Date" }, about)).toEqual({ $pawl: "Object", v: { $pawl: "Date" } });
  expect(writer.value(undefined, about)).toEqual({ $pawl: "undefined" });
});

test("plain JSON loses what JSON cannot express, and nothing else", () => {
  const value = {
    at: new Date(0),
    big: 12345678901234567890n,
    map: new Map([["a", 1n]]),
    pairs: new Map([[{ id: 1 }, 2]]),
    set: new Set([1]),
    none: undefined,
    nan: Number.NaN,
    bytes: new Uint8Array([1, 2]),
    url: new URL("https://example.com/x"),
  };
  expect(JSON.parse(JSON.stringify(toPlainJson(value)))).toEqual({
    at: "1970-01-01T00:00:00.000Z",
    big: "12345678901234567890",
    map: { a: "1" },
    pairs: [[{ id: 1 }, 2]],
    set: [1],
    nan: null,
    bytes: "AQI=",
    url: "https://example.com/x",
  });
});

test("the key __proto__ is a key like any other", () => {
  const value = JSON.parse('{"__proto__":{"admin":true},"a":1}');
  expect(JSON.stringify(toPlainJson(value))).toBe('{"__proto__":{"admin":true},"a":1}');
  const writer = new PayloadWriter(rules);
  expect(JSON.stringify(writer.value(value, about))).toBe('{"__proto__":{"admin":true},"a":1}');
});

test("an access without payloads sees no value, message or reason, but the classes of errors", () => {
  const writer = new PayloadWriter({ ...rules, canSee: false });
  expect(writer.value("secret", about)).toEqual({ $pawl: "hidden" });
  expect(writer.text("secret", about)).toBe("[hidden]");
  expect(writer.error(Object.assign(new TypeError("secret"), { code: "E_X" }), about)).toEqual({
    name: "TypeError",
    message: "[hidden]",
    code: "E_X",
  });
});

test("redact gets every value with what it is about, and the user", () => {
  const seen: unknown[] = [];
  const redact = (value: unknown, context: unknown) => {
    seen.push([value, context]);
    return "***";
  };
  const writer = new PayloadWriter({ ...rules, redact });
  expect(writer.value({ card: 4711 }, about)).toBe("***");
  expect(writer.text("declined", { runId: "r1" })).toBe("***");
  expect(seen).toEqual([
    [{ card: 4711 }, { ...about, user: "ada" }],
    ["declined", { kind: "text", runId: "r1", user: "ada" }],
  ]);
});

test("a value that is too large is left out, with its size", () => {
  const writer = new PayloadWriter({ ...rules, maxBytes: 10 });
  expect(writer.value("123456789", about)).toEqual({ $pawl: "large", bytes: 11 });
  expect(writer.value("12345678", about)).toBe("12345678");
});
