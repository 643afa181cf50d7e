import { expect, test } from "vitest";
import { explanationOf, stepOf } from "./explanation.js";
import type { ListedRun } from "./run-list.js";

const run = (fields: Partial<ListedRun>) =>
  ({ status: "waiting", explanation: null, error: null, damaged: [], waitingFor: [], ...fields }) as ListedRun;
const lineOf = (fields: Partial<ListedRun>) => explanationOf(run(fields), () => "in 5 m");

test.each([
  [
    'It waits for the signal "approved", at the latest at 2026-11-25T16:42:51.466Z.',
    'for the signal "approved", at the latest in 5 m.',
  ],
  ["It starts at 2026-11-25T16:42:51.466Z.", "starts in 5 m."],
  ['Worker "worker-1" executes it.', "on worker-1"],
  ['It is due, but no live worker has workflow "forgotten".', 'due, but no live worker has workflow "forgotten".'],
  ["Paused: The customer called.", "The customer called."],
  ["[hidden]", "hidden"],
])("the line continues the status: %s", (explanation, line) => {
  expect(lineOf({ explanation })).toBe(line);
});

test("a failed run is explained by its error", () => {
  const error = { name: "TypeError", message: "no email…" };
  expect(lineOf({ status: "failed", error } as Partial<ListedRun>)).toBe("TypeError: no email");
  const hidden = { name: "TypeError", message: "[hidden]" };
  expect(lineOf({ status: "failed", error: hidden } as Partial<ListedRun>)).toBe("TypeError; its message is hidden");
});

test("a completed run needs no line", () => {
  expect(lineOf({ status: "completed" })).toBe(null);
});

test("damage is more important than everything else", () => {
  expect(lineOf({ damaged: ["input"], explanation: "It waits." })).toMatch(/^Cannot be read: input/);
});

test("the step is where the run failed, is, or waits", () => {
  expect(stepOf(run({ failedStep: "pay", currentStep: "ship" }))).toBe("pay");
  expect(stepOf(run({ waitingFor: [{ kind: "signal" }, { kind: "step", step: "remind" }] }))).toBe("remind");
  expect(stepOf(run({}))).toBe(null);
});
