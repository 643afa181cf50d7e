import { expect, test } from "vitest";
import { type RunningAttempt, RunningAttempts } from "./running-attempts.js";

test("a body that ends after the turn has stopped waiting for it does not count against those that begin later", () => {
  const owner = { host: { executing: new Set() }, results: { pending: new Map() }, isDraining: false };
  const attempts = new RunningAttempts(owner as never);
  const attempt = (key: string) => ({ key, releaseSlot: null, scope: null, isOver: false }) as RunningAttempt;
  const forgotten = attempt("forgotten");
  attempts.add(forgotten);
  expect(attempts.isBusy).toBe(true);
  attempts.stopWaiting();
  expect(attempts.isBusy).toBe(false);
  attempts.onBodyEnded(forgotten);
  attempts.onRecorded();
  attempts.add(attempt("later"));
  expect(attempts.isBusy).toBe(true);
});
