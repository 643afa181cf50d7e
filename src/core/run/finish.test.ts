import { expect, test } from "vitest";
import { finishRun } from "./finish.js";
import { decodeMessage, encodeMessage } from "./message.js";
import type { RunSpec } from "./transition.js";

const run: RunSpec = {
  id: "r",
  workflow: "w",
  version: "",
  queue: "w",
  priority: 0,
  input: "null",
  heroType: null,
  heroId: null,
  tags: [],
  startKey: null,
  parentId: null,
  parentNode: null,
  parentIndex: null,
  parentAttempt: null,
};
const child: RunSpec = { ...run, parentId: "p", parentNode: "call" };
const completed = { status: "completed", output: "1", error: null } as const;

test("a run without parent and children sends no messages when it ends", () => {
  expect(finishRun(run, completed, 5, [])).toEqual({
    next: { kind: "finish", status: "completed", output: "1", error: null, startedAt: 5 },
    messages: [],
  });
});

test("a run that ends cancels its children, and then sends its result to its parent", () => {
  const cancelMessages = [encodeMessage("c", { type: "cancel", reason: null })];
  const { messages } = finishRun(child, completed, 5, cancelMessages);
  expect(messages.map(({ to }) => to)).toEqual(["c", "p"]);
  expect(decodeMessage(messages[1] as never)).toMatchObject({
    type: "child",
    node: "call",
    status: "completed",
    output: "1",
  });
});

test("an error of any size can be written, because a run must be able to end", () => {
  const error = { name: "Error", message: "x".repeat(2 * 1024 * 1024) };
  const { next } = finishRun(run, { status: "failed", output: null, error }, 5, []);
  expect(JSON.parse(next.error as string)).toMatchObject(error);
});

test("a run that was canceled before it started has no start time", () => {
  const error = { name: "RunCanceledError", message: "not needed" };
  const { next, messages } = finishRun(child, { status: "canceled", output: null, error }, null, []);
  expect(next).toMatchObject({ status: "canceled", startedAt: null });
  expect(decodeMessage(messages[0] as never)).toMatchObject({ status: "canceled", reason: "not needed", error: null });
});
