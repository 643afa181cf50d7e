/** The gate itself: what it calls an excess, and how it says so. */
import { expect, test } from "vitest";
import { excesses, inWords, savings } from "./gate.js";

const budget = { statements: 1, bytes: 100, "events inserted": 1 };

test("what costs as much as its budget is no excess", () => {
  expect(excesses(budget, { ...budget })).toEqual([]);
});

test("what rose is an excess, by its name, from what to what", () => {
  expect(excesses(budget, { ...budget, statements: 2, bytes: 101 })).toEqual([
    { what: "statements", from: 1, to: 2 },
    { what: "bytes", from: 100, to: 101 },
  ]);
});

test("what has no budget may not happen at all", () => {
  expect(excesses(budget, { ...budget, "cursors inserted": 1 })).toEqual([
    { what: "cursors inserted", from: 0, to: 1 },
  ]);
});

test("what fell is no excess but a saving, and does not make up for what rose", () => {
  const measured = { statements: 2, bytes: 50 };
  expect(excesses(budget, measured)).toEqual([{ what: "statements", from: 1, to: 2 }]);
  expect(savings(budget, measured)).toEqual([
    { what: "bytes", from: 100, to: 50 },
    { what: "events inserted", from: 1, to: 0 },
  ]);
});

test("it is said in words", () => {
  expect(inWords({ what: "statements", from: 1, to: 2 })).toBe("statements rose from 1 to 2");
  expect(inWords({ what: "bytes", from: 100, to: 50 })).toBe("bytes fell from 100 to 50");
});
