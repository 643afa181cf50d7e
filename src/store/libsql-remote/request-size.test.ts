import { expect, test } from "vitest";
import { StoreError } from "../../core/errors/errors.js";
import { splitIntoRequests, toSendable } from "./request-size.js";

const insert = (data: string) => ({ sql: "INSERT INTO t VALUES (?)", args: [data] });
const mebibyte = "x".repeat(1024 * 1024);

test("an ordinary batch is one request, and so is an empty one", () => {
  expect(splitIntoRequests([insert("a"), insert("b")])).toEqual([[insert("a"), insert("b")]]);
  expect(splitIntoRequests([])).toEqual([[]]);
});

test("a batch that is too large for one request is split, and keeps its order", () => {
  const statements = Array.from({ length: 40 }, (_, n) => insert(`${n} ${mebibyte}`));
  const requests = splitIntoRequests(statements);
  expect(requests.length).toBe(3);
  expect(requests.flat()).toEqual(statements);
});

test("the size of a request includes the escape characters of JSON", () => {
  const quotes = '"'.repeat(5 * 1024 * 1024);
  expect(splitIntoRequests([insert(quotes), insert(quotes)])).toHaveLength(2);
});

test("a single statement that is too large is refused", () => {
  const tooLarge = () => splitIntoRequests([insert("x".repeat(20 * 1024 * 1024))]);
  expect(tooLarge).toThrow(StoreError);
  expect(tooLarge).toThrow("larger than a libSQL server accepts (16 MiB)");
});

test("half of a surrogate pair becomes a replacement character, and all other values stay unchanged", () => {
  expect(toSendable("a\ud800b")).toBe("a\ufffdb");
  for (const value of ["🐴", "", null, 1, true]) expect(toSendable(value)).toBe(value);
});
