/** The limit of a statement, and what happens at it. */

import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { systemRuntime } from "../../runtime/system.js";
import { NoAnswerError, StatementDeadline } from "./statement-deadline.js";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

test("it is a third of the shortest lease of the workers that are there, ten seconds without any", () => {
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

test("an answer in time is passed on, and nothing is left behind", async () => {
  const deadline = new StatementDeadline(systemRuntime);
  const awaited = { isExecuting: vi.fn(async () => false), dropConnection: vi.fn() };
  expect(await deadline.within(Promise.resolve(7), awaited)).toBe(7);
  await expect(deadline.within(Promise.reject(new Error("no")), awaited)).rejects.toThrow("no");
  expect(vi.getTimerCount()).toBe(0);
});

test("silence cuts the connection and is an error of its own", async () => {
  const deadline = new StatementDeadline(systemRuntime);
  const awaited = { isExecuting: vi.fn(async () => false), dropConnection: vi.fn() };
  const failed = expect(deadline.within(new Promise(() => {}), awaited)).rejects.toThrow(NoAnswerError);
  await vi.advanceTimersByTimeAsync(9_999);
  expect(awaited.dropConnection).not.toHaveBeenCalled();
  await vi.advanceTimersByTimeAsync(1);
  await failed;
  expect(awaited.dropConnection).toHaveBeenCalledOnce();
});

test("a server that says it is at work is waited for", async () => {
  const deadline = new StatementDeadline(systemRuntime);
  let isAtWork = true;
  const awaited = { isExecuting: vi.fn(async () => isAtWork), dropConnection: vi.fn() };
  const failed = expect(deadline.within(new Promise(() => {}), awaited)).rejects.toThrow(NoAnswerError);
  await vi.advanceTimersByTimeAsync(35_000);
  expect(awaited.isExecuting).toHaveBeenCalledTimes(3);
  expect(awaited.dropConnection).not.toHaveBeenCalled();
  isAtWork = false;
  await vi.advanceTimersByTimeAsync(5_000);
  await failed;
});

test("a server that cannot be asked is silent", async () => {
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
