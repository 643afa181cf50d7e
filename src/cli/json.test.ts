import { expect, test } from "vitest";
import { TimeoutError } from "../core/errors/errors.js";
import { jsonOf } from "./json.js";

const roundTrip = (value: unknown) => JSON.parse(jsonOf(value));

test("values of types that JSON lacks become the nearest JSON type", () => {
  const value = {
    date: new Date(0),
    never: new Date(Number.NaN),
    big: 2n ** 64n,
    none: undefined,
    infinite: Number.POSITIVE_INFINITY,
    map: new Map<unknown, unknown>([[{ a: 1 }, new Set([1n])]]),
    bytes: new Uint8Array([1, 2, 3]),
    url: new URL("https://example.org/x"),
    list: [undefined, [new Date(1)]],
  };
  expect(roundTrip(value)).toEqual({
    date: "1970-01-01T00:00:00.000Z",
    never: null,
    big: "18446744073709551616",
    none: null,
    infinite: "Infinity",
    map: [[{ a: 1 }, ["1"]]],
    bytes: "AQID",
    url: "https://example.org/x",
    list: [null, ["1970-01-01T00:00:00.001Z"]],
  });
  expect(jsonOf(undefined)).toBe("null");
});

test("an error becomes an object with its name, message, code, stack and cause", () => {
  const error = new TimeoutError("too slow", { cause: new RangeError("far") });
  expect(roundTrip({ error })).toEqual({
    error: {
      name: "TimeoutError",
      message: "too slow",
      code: "TIMEOUT",
      stack: expect.stringContaining("too slow"),
      cause: { name: "RangeError", message: "far", stack: expect.any(String) },
    },
  });
});

test("a key named __proto__ stays an ordinary key", () => {
  expect(jsonOf(JSON.parse('{"__proto__": {"a": 1}}'))).toBe('{"__proto__":{"a":1}}');
});
