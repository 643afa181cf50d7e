/** The gate itself: what counts as an excess, and how it is reported. */
import { expect, test } from "vitest";
import { describeExcess, excesses, savings } from "./gate.js";

const budget = { statements: 1, bytes: 100, "events inserted": 1 };

test("a cost equal to its budget is no excess", () => {
  expect(excesses(budget, { ...budget })).toEqual([]);
});

test("a cost above its budget is an excess, reported with its name and both amounts", () => {
  expect(excesses(budget, { ...budget, statements: 2, bytes: 101 })).toEqual([
    { what: "statements", from: 1, to: 2 },
    { what: "bytes", from: 100, to: 101 },
  ]);
});

test("a cost without a budget is an excess", () => {
  expect(excesses(budget, { ...budget, "cursors inserted": 1 })).toEqual([
    { what: "cursors inserted", from: 0, to: 1 },
  ]);
});

test("a cost below its budget is a saving and does not offset an excess", () => {
  const measured = { statements: 2, bytes: 50 };
  expect(excesses(budget, measured)).toEqual([{ what: "statements", from: 1, to: 2 }]);
  expect(savings(budget, measured)).toEqual([
    { what: "bytes", from: 100, to: 50 },
    { what: "events inserted", from: 1, to: 0 },
  ]);
});

test("excesses and savings are described in words", () => {
  expect(describeExcess({ what: "statements", from: 1, to: 2 })).toBe("statements rose from 1 to 2");
  expect(describeExcess({ what: "bytes", from: 100, to: 50 })).toBe("bytes fell from 100 to 50");
});
