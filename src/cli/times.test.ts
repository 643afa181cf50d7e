import { expect, test } from "vitest";
import { absoluteAndRelativeTime, clock, relativeTime } from "./times.js";

const now = new Date(2025, 10, 16, 14, 2, 7).getTime();
const before = (ms: number) => new Date(now - ms);
const [second, minute, hour, day] = [1_000, 60_000, 3_600_000, 86_400_000];

test.each([
  [0, "now"],
  [499, "now"],
  [1_400, "1s ago"],
  [59 * second, "59s ago"],
  [59.6 * second, "1m ago"],
  [90 * second, "2m ago"],
  [59.6 * minute, "1h ago"],
  [5 * hour + 10 * minute, "5h ago"],
  [23.6 * hour, "1 day ago"],
  [2 * day, "2 days ago"],
  [1_500 * day, "1,500 days ago"],
  [-second, "in 1s"],
  [-(7 * day - 5 * second), "in 7 days"],
])("%d ms before now is %s", (ms, text) => {
  expect(relativeTime(before(ms), now)).toBe(text);
});

test("a time leaves out the parts of its date that are those of today", () => {
  expect(clock(before(minute), now)).toBe("14:01:07");
  expect(clock(new Date(2025, 10, 15, 9, 5), now)).toBe("15 Nov 09:05");
  expect(clock(new Date(2024, 0, 1), now)).toBe("1 Jan 2024 00:00");
  expect(absoluteAndRelativeTime(before(3 * minute), now)).toBe("13:59:07 (3m ago)");
});
