import { expect, test } from "vitest";
import { criticalPath } from "./critical-path.js";
import { topology } from "./structure.js";

const structure = { names: ["a", "b", "c", "d"], before: [[], [0], [0], [1, 2]], edgeCount: 4 };
const pathOf = (tookMs: readonly number[]) => criticalPath(structure, topology(structure).order, tookMs);

test("the critical path is the longest by duration", () => {
  expect(pathOf([10, 50, 20, 5])).toEqual({ path: [0, 1, 3], totalMs: 65 });
  expect(pathOf([10, 20, 50, 5])).toEqual({ path: [0, 2, 3], totalMs: 65 });
});

test("it ends at the last node that has run", () => {
  expect(pathOf([10, 50, 20, 0])).toEqual({ path: [0, 1], totalMs: 60 });
});

test("there is none before something has run, and none in a chain", () => {
  expect(pathOf([0, 0, 0, 0])).toBe(null);
  expect(pathOf([10, 20, 0, 5])).toBe(null);
});
