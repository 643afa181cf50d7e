/** A checker that never reports anything proves nothing. */
import { expect, test } from "vitest";
import { checkItems, type DoneItem } from "./item-ledger.js";

const done = (pid: number, ...items: number[]): DoneItem[] => items.map((item) => ({ pid, item }));

test("reports nothing for items that are processed in order, by any processes", () => {
  expect(checkItems([...done(7, 0, 1), ...done(8, 2, 3)], 4)).toEqual({ problems: [], repeats: 0, processes: 2 });
});

test("counts the item in flight that the next process repeats", () => {
  const all = [...done(7, 0, 1), ...done(8, 1, 2), ...done(9, 2, 3)];
  expect(checkItems(all, 4)).toEqual({ problems: [], repeats: 2, processes: 3 });
});

test.each([
  ["an item that was left out", [...done(7, 0, 1), ...done(8, 3)], "After item 1 comes item 3, done by 8."],
  [
    "two items that are done again",
    [...done(7, 0, 1, 2), ...done(8, 1, 2, 3)],
    "After item 2 comes item 1, done by 8.",
  ],
  ["an item that one process does twice", done(7, 0, 1, 1, 2, 3), "After item 1 comes item 1, done by 7."],
  ["a first item that is not the first", done(7, 1, 2, 3), "After item -1 comes item 1, done by 7."],
  ["a last item that is not the last", done(7, 0, 1, 2), "The last item is 2, not 3."],
])("reports %s", (_, all, complaint) => {
  expect(checkItems(all, 4).problems).toEqual([complaint]);
});
