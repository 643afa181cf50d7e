/** Worlds that have found bugs, by what went wrong in them. */
import { expect, test } from "vitest";
import { runSeed } from "./run-seed.js";

test.each([
  [96, "an operator's skip hit a step whose next attempt was already running, and both results were recorded"],
  [301, "a run was paused because a commit that had failed was executed after all"],
  [367, "the commit that ended a run created a child, which nothing canceled"],
  [407, "a claim that had failed was executed after all, and no worker knew that it owned the run"],
  [502, "signals arrived while a transactional step was writing, and the wait was given wrong numbers"],
  [7318, "a signal to a run whose worker had died made its task wait for ever"],
  [
    7447,
    "a run that was admitted while it was paused lost the names of its slots, and a client that ended it gave none back",
  ],
  [9331, "a park that had failed was executed when its worker had claimed the run again, and the task was never due"],
  [9528, "an event of another owner of one run was taken for the proof that a whole batch was written"],
  [21789, "a park was repeated although its answer was lost and the run had been claimed again"],
  [23744, "a run was paused as unwritable although its worker had claimed it again"],
  [10238, "another event was taken for the proof that a transaction was committed, and the code saw its output"],
  [1938, "a start that is to wait for another run was begun, because an earlier try of it was executed late"],
])("seed %i: %s", async (seed) => {
  expect((await runSeed({ seed })).violations).toEqual([]);
});
