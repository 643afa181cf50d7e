/** The limit of a statement, and what happens at it. */

import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { systemRuntime } from "../../runtime/system.js";
import { NoAnswerError, StatementDeadline } from "./statement-deadline.js";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

test("it is a third of the shortest lease of the workers that are there, ten seconds without any", () => {
  const deadline = new StatementDeadline(systemRuntime);
  expect(deadline.ms).toBe(10_000);
  deadline.enlisted("a", 30_000);
  deadline.enlisted("b", 9_000);
  expect(deadline.ms).toBe(3_000);
  deadline.enlisted("c", 100);
  expect(deadline.ms).toBe(1_000);
  deadline.retired("b");
  deadline.retired("c");
  expect(deadline.ms).toBe(10_000);
  deadline.retired("a");
  expect(deadline.ms).toBe(10_000);
});

test("an answer in time is passed on, and nothing is left behind", async () => {
  const deadline = new StatementDeadline(systemRuntime);
  const awaited = { isAtWork: vi.fn(async () => false), cut: vi.fn() };
  expect(await deadline.within(Promise.resolve(7), awaited)).toBe(7);
  await expect(deadline.within(Promise.reject(new Error("no")), awaited)).rejects.toThrow("no");
  expect(vi.getTimerCount()).toBe(0);
});

test("silence cuts the connection and is an error of its own", async () => {
  const deadline = new StatementDeadline(systemRuntime);
  const awaited = { isAtWork: vi.fn(async () => false), cut: vi.fn() };
  const failed = expect(deadline.within(new Promise(() => {}), awaited)).rejects.toThrow(NoAnswerError);
  await vi.advanceTimersByTimeAsync(9_999);
  expect(awaited.cut).not.toHaveBeenCalled();
  await vi.advanceTimersByTimeAsync(1);
  await failed;
  expect(awaited.cut).toHaveBeenCalledOnce();
});

test("a server that says it is at work is waited for", async () => {
  const deadline = new StatementDeadline(systemRuntime);
  let isAtWork = true;
  const awaited = { isAtWork: vi.fn(async () => isAtWork), cut: vi.fn() };
  const failed = expect(deadline.within(new Promise(() => {}), awaited)).rejects.toThrow(NoAnswerError);
  await vi.advanceTimersByTimeAsync(35_000);
  expect(awaited.isAtWork).toHaveBeenCalledTimes(3);
  expect(awaited.cut).not.toHaveBeenCalled();
  isAtWork = false;
  await vi.advanceTimersByTimeAsync(5_000);
  await failed;
});

test("a server that cannot be asked is silent", async () => {
  const deadline = new StatementDeadline(systemRuntime);
  const cut = vi.fn();
  const isAtWork = () => Promise.reject(new Error("unreachable"));
  const failed = expect(deadline.within(new Promise(() => {}), { isAtWork, cut })).rejects.toThrow(NoAnswerError);
  await vi.advanceTimersByTimeAsync(10_000);
  await failed;
  expect(cut).toHaveBeenCalledOnce();
});
