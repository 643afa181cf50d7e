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
  return executions.map((one) => bar(one, scale, now));
};

test("bars lie where their time is, and are never invisible", () => {
  expect(
    draw([execution("completed", 0, 100), execution("failed", 300, 301), execution("completed", 500, 1_000)]),
  ).toEqual(["██", "   █", "     ██████"]);
});

test("what has not ended goes on until now, what has not begun is a mark at the end", () => {
  expect(
    draw([execution("completed", 0, 500), execution("executing", 500, null), execution("scheduled", null, null)]),
  ).toEqual(["██████", "     ██████", "          ░"]);
});

test("a step that was passed over was there for a moment", () => {
  expect(draw([execution("completed", 0, 1_000), execution("skipped", null, 500)])).toEqual(["███████████", "     █"]);
});

test("when nothing has taken any time, all is at the beginning", () => {
  expect(draw([execution("completed", 5, 5), execution("completed", 5, 5)])).toEqual(["█", "█"]);
  expect(draw([execution("scheduled", null, null)])).toEqual(["          ░"]);
});
