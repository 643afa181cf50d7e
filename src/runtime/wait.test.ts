import { expect, test } from "vitest";
import type { Runtime, Timer } from "./runtime.js";
import { sleep, sleepUnlessAborted } from "./wait.js";

/** Timers that fire when the test says so. */
function manualTimers() {
  const timers = new Map<Timer, { readonly callback: () => void; readonly ms: number }>();
  const runtime = {
    setTimeout: (callback: () => void, ms: number) => {
      const timer: Timer = { unref: () => timer };
      timers.set(timer, { callback, ms });
      return timer;
    },
    clearTimeout: (timer: Timer) => void timers.delete(timer),
  } as unknown as Runtime;
  const fire = () => {
    const due = [...timers.values()];
    timers.clear();
    for (const { callback } of due) callback();
  };
  return { runtime, fire, waits: () => [...timers.values()].map(({ ms }) => ms) };
}

test("sleep resolves when its timer fires", async () => {
  const { runtime, fire, waits } = manualTimers();
  const slept = sleep(runtime, 5_000);
  expect(waits()).toEqual([5_000]);
  fire();
  await slept;
});

test.each([
  ["without a signal", undefined],
  ["with a signal that is not aborted", new AbortController().signal],
])("sleepUnlessAborted %s resolves when its timer fires", async (_, signal) => {
  const { runtime, fire, waits } = manualTimers();
  const slept = sleepUnlessAborted(runtime, 5_000, signal);
  expect(waits()).toEqual([5_000]);
  fire();
  await slept;
});

test("sleepUnlessAborted resolves early when the signal is aborted, and leaves no timer behind", async () => {
  const { runtime, waits } = manualTimers();
  const stop = new AbortController();
  const slept = sleepUnlessAborted(runtime, 5_000, stop.signal);
  stop.abort();
  await slept;
  expect(waits()).toEqual([]);
});

test("sleepUnlessAborted resolves at once when the signal is already aborted", async () => {
  const { runtime, waits } = manualTimers();
  await sleepUnlessAborted(runtime, 5_000, AbortSignal.abort());
  expect(waits()).toEqual([]);
});
