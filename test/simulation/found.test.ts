/** Worlds that have found bugs, by what went wrong in them. */
import { expect, test } from "vitest";
import { runSeed } from "./run-seed.js";

test.each([
  [96, "an operator's skip hit a step whose next attempt was already running, and both results were recorded"],
  [301, "a run was paused because a commit that had failed was executed after all"],
  [367, "the commit that ended a run created a child, which nothing canceled"],
  [407, "a claim that had failed was executed after all, and no worker knew that it owned the run"],
  [502, "signals arrived while a transactional step was writing, and the wait was given wrong numbers"],
])("seed %i: %s", async (seed) => {
  expect((await runSeed({ seed })).violations).toEqual([]);
});
