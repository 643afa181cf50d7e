import { expect, test } from "vitest";
import type { Runtime, Timer } from "../../runtime/runtime.js";
import { LoopLag } from "./loop-lag.js";

/** A runtime whose clock and ticks the test moves. */
function manualRuntime() {
  let now = 1_000;
  let tick: (() => void) | null = null;
  const timer: Timer = { unref: () => timer };
  const runtime = {
    monotonic: () => now,
    setInterval: (callback: () => void) => {
      tick = callback;
      return timer;
    },
    clearInterval: () => void (tick = null),
  } as unknown as Runtime;
  const advance = (ms: number) => void (now += ms);
  return { runtime, advance, tick: () => tick?.(), isTicking: () => tick !== null };
}

test("a process whose timers fire in time has no lag", () => {
  const { runtime, advance, tick } = manualRuntime();
  const lag = new LoopLag(runtime);
  for (let count = 0; count < 5; count += 1) {
    advance(100);
    tick();
  }
  expect(lag.takeMaxMs()).toBe(0);
});

test("the longest delay since the previous call is reported, once", () => {
  const { runtime, advance, tick } = manualRuntime();
  const lag = new LoopLag(runtime);
  for (const ms of [100, 850.4, 100, 300]) {
    advance(ms);
    tick();
  }
  expect(lag.takeMaxMs()).toBe(750);
  advance(100);
  tick();
  expect(lag.takeMaxMs()).toBe(0);
});

test("a delay counts once, even if it is asked for before the late tick", () => {
  const { runtime, advance, tick } = manualRuntime();
  const lag = new LoopLag(runtime);
  advance(2_100);
  expect(lag.takeMaxMs()).toBe(2_000);
  tick();
  expect(lag.takeMaxMs()).toBe(0);
});

test("it stops with its worker", () => {
  const { runtime, isTicking } = manualRuntime();
  new LoopLag(runtime).stop();
  expect(isTicking()).toBe(false);
});
