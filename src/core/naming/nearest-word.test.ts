import { expect, test } from "vitest";
import { didYouMean, nearestWord } from "./nearest-word.js";

const commands = ["runs", "resume", "show", "start", "signal", "skip", "worker", "workers", "migrate"];

test.each([
  ["rusn", "runs"],
  ["shwo", "show"],
  ["strat", "start"],
  ["wroker", "worker"],
  ["mig", "migrate"],
  ["resumee", "resume"],
  ["signals", "signal"],
])("the nearest word to %s is %s", (typed, expected) => {
  expect(nearestWord(typed, commands)).toBe(expected);
});

test.each(["frobnicate", "x", "zz", ""])("no word is near to %j", (typed) => {
  expect(nearestWord(typed, commands)).toBeNull();
  expect(didYouMean(typed, commands)).toBe("");
});
