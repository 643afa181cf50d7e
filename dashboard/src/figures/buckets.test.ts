import { describe, expect, test } from "vitest";
import { bucketsOf, changeText, type MinuteFigures, niceMaximum, totalsOf } from "./buckets.js";

const start = Date.UTC(2026, 0, 31, 9, 3);
const minutes = (count: number): MinuteFigures[] =>
  Array.from({ length: count }, (_, index) => ({
    at: new Date(start + index * 60_000).toISOString(),
    ...{ began: 1, completed: 0, failed: index % 2, canceled: 0, paused: 0 },
  }));

describe("bucketsOf", () => {
  test("a minute is a column while there is room", () => {
    const buckets = bucketsOf(minutes(60), 60);
    expect(buckets).toHaveLength(60);
    expect(buckets[0]).toMatchObject({ from: start, to: start + 60_000, began: 1 });
  });

  test("columns begin at whole multiples of their width, and lose nothing", () => {
    const buckets = bucketsOf(minutes(120), 30);
    expect(buckets.map(({ from }) => new Date(from).getUTCMinutes() % 5)).toEqual(buckets.map(() => 0));
    expect(totalsOf(buckets)).toMatchObject({ began: 120, failed: 60 });
  });

  test("two days fit", () => {
    expect(bucketsOf(minutes(2_880), 96).length).toBeLessThanOrEqual(97);
  });
});

test.each([
  [5, 5, "same"],
  [5, 0, "+5"],
  [112, 100, "+12 %"],
  [50, 100, "−50 %"],
  [1_001, 1_000, "about the same"],
  [3_000, 100, "× 30"],
])("%d after %d is %j", (now, before, text) => {
  expect(changeText(now, before)).toBe(text);
});

test.each([
  [0, 1],
  [3, 3],
  [7, 10],
  [11, 20],
  [480, 500],
  [1_000, 1_000],
])("an axis for %d ends at %d", (value, top) => {
  expect(niceMaximum(value)).toBe(top);
});
