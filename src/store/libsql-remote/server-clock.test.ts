import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { systemRuntime } from "../../runtime/system.js";
import { ServerClock } from "./server-clock.js";

beforeEach(() => void vi.useFakeTimers({ now: 100_000 }));
afterEach(() => void vi.useRealTimers());

test("the clock is not ahead of the server's, and behind it by no more than the round trip took", () => {
  const clock = new ServerClock(systemRuntime);
  // The server's clock is 5,000 ms ahead of this machine's; the round trip took 40 ms, 30 of them for the response.
  clock.adjust(105_010, 100_000, 100_040);
  vi.setSystemTime(100_040);
  expect(clock.now()).toBe(105_010);
});

test("a response that contradicts the offset changes it only as far as necessary", () => {
  const clock = new ServerClock(systemRuntime);
  clock.adjust(105_010, 100_000, 100_040);
  clock.adjust(205_000, 200_000, 200_002);
  vi.setSystemTime(200_002);
  expect(clock.now()).toBe(205_000);
  clock.adjust(305_030, 300_000, 300_100);
  vi.setSystemTime(300_100);
  expect(clock.now()).toBe(305_098);
});

test("a slow response that is consistent with the offset does not change it", () => {
  const clock = new ServerClock(systemRuntime);
  clock.adjust(105_000, 100_000, 100_001);
  clock.adjust(110_000, 104_000, 109_000);
  vi.setSystemTime(200_000);
  expect(clock.now()).toBe(204_999);
});

test("a response is ignored if this machine's clock was set back meanwhile", () => {
  const clock = new ServerClock(systemRuntime);
  clock.adjust(105_000, 100_000, 100_001);
  clock.adjust(105_100, 100_100, 50_000);
  expect(clock.now()).toBe(104_999);
});
