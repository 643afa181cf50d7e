import { expect, test } from "vitest";
import { OpeningRuns } from "./opening-runs.js";

test("only the latest opening of a run may start a turn, whichever ends first", () => {
  const runs = new OpeningRuns();
  const first = runs.begin(["a", "b"]);
  const second = runs.begin(["a"]);
  expect([first.isLatest("a"), first.isLatest("b"), second.isLatest("a")]).toEqual([false, true, true]);
  first.end();
  expect([...runs.ids]).toEqual(["a"]);
  second.end();
  expect(runs.size).toBe(0);
});

test("a run that has a turn is not opening any more, although others of its claim still are", () => {
  const runs = new OpeningRuns();
  const opening = runs.begin(["a", "b"]);
  runs.onTurnStarted("a");
  expect([runs.has("a"), runs.has("b"), opening.isLatest("a")]).toEqual([false, true, false]);
});
