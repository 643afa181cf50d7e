import { expect, test } from "vitest";
import { newEvent } from "../../core/run/event.js";
import { fold } from "../../core/run/fold.js";
import { countWorkerDeaths } from "./crash-loop.js";

const recovered = (deliveries: number) => newEvent("run.recovered", {}, { deliveries });
const failed = newEvent("step.failed", { node: "a", attempt: 1 }, { error: { name: "E", message: "m" }, retryMs: 0 });

/** @param parkedSeq the last event of the log when the run was parked; null: it never was */
function deathsAt(deliveries: number, log: readonly ReturnType<typeof newEvent>[], parkedSeq: number | null): number {
  const started = newEvent("run.started", {});
  const state = fold([started, ...log].map((event, index) => ({ ...event, seq: index + 1, at: index })));
  const waiting = parkedSeq === null ? null : JSON.stringify({ seq: parkedSeq, waitingFor: [] });
  return countWorkerDeaths({ deliveries, state, run: { waiting } } as never, { inbox: [] } as never);
}

test("every delivery before the present one counts as a death, also if the log does not know of it", () => {
  expect(deathsAt(1, [], null)).toBe(0);
  expect(deathsAt(6, [], null)).toBe(5);
  expect(deathsAt(6, [recovered(2), recovered(3)], null)).toBe(5);
});

test("deaths before the last progress do not count", () => {
  expect(deathsAt(6, [recovered(2), failed, recovered(3)], null)).toBe(4);
});

test("progress before the run was parked says nothing about the deliveries after it", () => {
  // The delivery in which a worker has recorded something was counted from an earlier park.
  expect(deathsAt(6, [recovered(2), failed], 3)).toBe(5);
  expect(deathsAt(6, [recovered(2), failed, failed], 3)).toBe(5);
  expect(deathsAt(6, [recovered(2), failed, recovered(2), recovered(3)], 3)).toBe(5);
  expect(deathsAt(6, [recovered(2), failed, recovered(2), failed, recovered(3)], 3)).toBe(4);
});
