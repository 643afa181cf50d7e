import { expect, test } from "vitest";
import { StoreError } from "../../core/errors/errors.js";
import { splitIntoRequests, toSendable } from "./request-size.js";

const insert = (data: string) => ({ sql: "INSERT INTO t VALUES (?)", args: [data] });
const mebibyte = "x".repeat(1024 * 1024);

test("an ordinary batch is one message, and so is an empty one", () => {
  expect(splitIntoRequests([insert("a"), insert("b")])).toEqual([[insert("a"), insert("b")]]);
  expect(splitIntoRequests([])).toEqual([[]]);
});

test("what is more than a server takes is divided, in its order", () => {
  const statements = Array.from({ length: 40 }, (_, n) => insert(`${n} ${mebibyte}`));
  const messages = splitIntoRequests(statements);
  expect(messages.length).toBe(3);
  expect(messages.flat()).toEqual(statements);
});

test("what counts is the size on the way, with everything escaped", () => {
  const quotes = '"'.repeat(5 * 1024 * 1024);
  expect(splitIntoRequests([insert(quotes), insert(quotes)])).toHaveLength(2);
});

test("one statement that is too large is refused for good", () => {
  const tooLarge = () => splitIntoRequests([insert("x".repeat(20 * 1024 * 1024))]);
  expect(tooLarge).toThrow(StoreError);
  expect(tooLarge).toThrow("more than a libSQL server takes (16 MiB)");
});

test("half of a surrogate pair becomes a replacement character, everything else stays", () => {
  expect(toSendable("a\ud800b")).toBe("a\ufffdb");
  for (const value of ["🐴", "", null, 1, true]) expect(toSendable(value)).toBe(value);
});
