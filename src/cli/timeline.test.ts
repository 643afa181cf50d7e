import { expect, test } from "vitest";
import type { ExecutionInfo } from "../client/inspect/executions.js";
import { bar, scaleOf } from "./timeline.js";

const now = 1_000;

function execution(state: ExecutionInfo["state"], from: number | null, to: number | null) {
  const at = (ms: number | null) => (ms === null ? null : new Date(ms));
  return { state, startedAt: at(from), finishedAt: at(to) };
}

const draw = (executions: readonly ReturnType<typeof execution>[]) => {
  const scale = scaleOf(executions, 11, now);
  return executions.map((interval) => bar(interval, scale, now));
};

test("a bar is at its place on the scale and has at least one block", () => {
  expect(
    draw([execution("completed", 0, 100), execution("failed", 300, 301), execution("completed", 500, 1_000)]),
  ).toEqual(["██", "   █", "     ██████"]);
});

test("a running execution lasts until now, a scheduled one is a mark at the end", () => {
  expect(
    draw([execution("completed", 0, 500), execution("executing", 500, null), execution("scheduled", null, null)]),
  ).toEqual(["██████", "     ██████", "          ░"]);
});

test("a skipped step is one block at the time when it was skipped", () => {
  expect(draw([execution("completed", 0, 1_000), execution("skipped", null, 500)])).toEqual(["███████████", "     █"]);
});

test("executions that took no time are at the start of the scale", () => {
  expect(draw([execution("completed", 5, 5), execution("completed", 5, 5)])).toEqual(["█", "█"]);
  expect(draw([execution("scheduled", null, null)])).toEqual(["          ░"]);
});
