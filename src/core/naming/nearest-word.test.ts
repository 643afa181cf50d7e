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
])("%s is taken for %s", (typed, meant) => {
  expect(nearestWord(typed, commands)).toBe(meant);
});

test.each(["frobnicate", "x", "zz", ""])("%j is taken for nothing", (typed) => {
  expect(nearestWord(typed, commands)).toBeNull();
  expect(didYouMean(typed, commands)).toBe("");
});
