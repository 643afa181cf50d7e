import { expect, test } from "vitest";
import { findJsonErrorPosition } from "./json-error-position.js";

test.each([
  ["", 1, 1],
  ["{", 1, 2],
  ['{"a": 1,\n "b": }', 2, 7],
  ['{"a": 1\n "b": 2}', 2, 2],
  ['{"a" 1}', 1, 6],
  ["{a: 1}", 1, 2],
  ['{"a": 1,}', 1, 9],
  ["[1, 2", 1, 6],
  ["[1,]", 1, 4],
  ["[1}", 1, 3],
  ["[01]", 1, 3],
  ['["open]', 1, 2],
  ['["\\x"]', 1, 2],
  ["{} {}", 1, 4],
  ["[tru]", 1, 2],
])("%j stops being JSON in line %i, column %i", (json, line, column) => {
  expect(() => JSON.parse(json)).toThrow();
  expect(findJsonErrorPosition(json)).toBe(`line ${line}, column ${column}`);
});

test.each(["1", '"a\\u00e9\\n"', " [ ] ", "{}", '{"a": [1, -2.5e+3, true, null, {"b": {}}], "c": ""}\n'])(
  "%j is JSON",
  (json) => {
    JSON.parse(json);
    expect(findJsonErrorPosition(json)).toBe(null);
  },
);
