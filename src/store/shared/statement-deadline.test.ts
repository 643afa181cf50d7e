/** The deadline of a statement, and what happens when it passes. */

import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { systemRuntime } from "../../runtime/system.js";
import { NoAnswerError, StatementDeadline } from "./statement-deadline.js";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

test("the deadline is a third of the shortest registered lease, at least one second, and ten seconds without a lease", () => {
  const deadline = new StatementDeadline(systemRuntime);
  expect(deadline.ms).toBe(10_000);
  deadline.addLease("a", 30_000);
  deadline.addLease("b", 9_000);
  expect(deadline.ms).toBe(3_000);
  deadline.addLease("c", 100);
  expect(deadline.ms).toBe(1_000);
  deadline.removeLease("b");
  deadline.removeLease("c");
  expect(deadline.ms).toBe(10_000);
  deadline.removeLease("a");
  expect(deadline.ms).toBe(10_000);
});

test("an answer in time is passed on and leaves no timer behind", async () => {
  const deadline = new StatementDeadline(systemRuntime);
  const statement = { isExecuting: vi.fn(async () => false), dropConnection: vi.fn() };
  expect(await deadline.within(Promise.resolve(7), statement)).toBe(7);
  await expect(deadline.within(Promise.reject(new Error("no")), statement)).rejects.toThrow("no");
  expect(vi.getTimerCount()).toBe(0);
});

test("a statement without an answer drops the connection and rejects with NoAnswerError", async () => {
  const deadline = new StatementDeadline(systemRuntime);
  const statement = { isExecuting: vi.fn(async () => false), dropConnection: vi.fn() };
  const failed = expect(deadline.within(new Promise(() => {}), statement)).rejects.toThrow(NoAnswerError);
  await vi.advanceTimersByTimeAsync(9_999);
  expect(statement.dropConnection).not.toHaveBeenCalled();
  await vi.advanceTimersByTimeAsync(1);
  await failed;
  expect(statement.dropConnection).toHaveBeenCalledOnce();
});

test("a statement that the server is still executing is waited for", async () => {
  const deadline = new StatementDeadline(systemRuntime);
  let isServerExecuting = true;
  const statement = { isExecuting: vi.fn(async () => isServerExecuting), dropConnection: vi.fn() };
  const failed = expect(deadline.within(new Promise(() => {}), statement)).rejects.toThrow(NoAnswerError);
  await vi.advanceTimersByTimeAsync(35_000);
  expect(statement.isExecuting).toHaveBeenCalledTimes(3);
  expect(statement.dropConnection).not.toHaveBeenCalled();
  isServerExecuting = false;
  await vi.advanceTimersByTimeAsync(5_000);
  await failed;
});

test("a server that cannot be asked on another connection counts as not answering", async () => {
  const deadline = new StatementDeadline(systemRuntime);
  const dropConnection = vi.fn();
  const isExecuting = () => Promise.reject(new Error("unreachable"));
  const failed = expect(deadline.within(new Promise(() => {}), { isExecuting, dropConnection })).rejects.toThrow(
    NoAnswerError,
  );
  await vi.advanceTimersByTimeAsync(10_000);
  await failed;
  expect(dropConnection).toHaveBeenCalledOnce();
});
