import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { InvalidInputError } from "../errors/errors.js";
import { type Duration, formatDuration, parseDuration } from "./duration.js";

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

describe("parseDuration", () => {
  test.each<[Duration, number]>([
    ["2 days", 2 * DAY],
    ["1h 30m", 90 * MINUTE],
    ["1h30m", 90 * MINUTE],
    ["250ms", 250],
    ["1.5 hours", 90 * MINUTE],
    [".5s", 500],
    ["90s", 90 * SECOND],
    ["1 week", 7 * DAY],
    ["2w", 14 * DAY],
    ["3 weeks 2 days", 23 * DAY],
    ["1 sec", SECOND],
    ["5 min", 5 * MINUTE],
    ["5 minutes", 5 * MINUTE],
    ["1 hr", HOUR],
    ["1 Hour", HOUR],
    ["7 d", 7 * DAY],
    ["  10   milliseconds ", 10],
    ["1d 2h 3m 4s 5ms", DAY + 2 * HOUR + 3 * MINUTE + 4 * SECOND + 5],
    ["0s", 0],
    [0, 0],
    [250, 250],
    [1.4, 1],
    [{ days: 2 }, 2 * DAY],
    [{ hours: 1, minutes: 30 }, 90 * MINUTE],
    [{ weeks: 1, seconds: 1, milliseconds: 1 }, 7 * DAY + 1001],
    [{ hours: 0.5 }, 30 * MINUTE],
    ["365250 days", 365_250 * DAY],
  ])("%o is %d ms", (duration, ms) => {
    expect(parseDuration(duration)).toBe(ms);
  });

  test.each<[unknown, RegExp]>([
    [Number.NaN, /NaN is not a number/],
    [Number.POSITIVE_INFINITY, /Infinity is longer than 1000 years/],
    [-1, /-1 is negative/],
    ["-1s", /"-1s" is not a duration/],
    ["", /"" is not a duration/],
    ["   ", /is not a duration/],
    ["soon", /"soon" is not a duration/],
    ["500", /"500" is not a duration/],
    ["1 fortnight", /unknown unit "fortnight"/],
    ["2 months", /unknown unit "months"/],
    ["1h 30", /is not a duration/],
    ["1.2.3s", /is not a duration/],
    ["1e3s", /unknown unit "e"/],
    ["1h, 2m", /is not a duration/],
    ["9".repeat(400), /is not a duration/],
    [`${"9".repeat(90)} days`, /longer than 1000 years/],
    ["365251 days", /longer than 1000 years/],
    [{}, /is empty/],
    [{ day: 2 }, /unknown unit "day"/],
    [{ toString: 2 }, /unknown unit "toString"/],
    [{ days: "2" }, /days that is not a number/],
    [{ days: undefined }, /days that is not a number/],
    [{ days: Number.NaN }, /days that is not a number/],
    [{ days: -1, hours: 48 }, /negative days/],
    [{ days: Number.POSITIVE_INFINITY }, /longer than 1000 years/],
    [null, /null is not a duration/],
    [undefined, /undefined is not a duration/],
    [true, /is not a duration/],
    [5n, /is not a duration/],
    [Symbol("s"), /is not a duration/],
    [() => 1, /is not a duration/],
    [[1], /is not a duration/],
    [
      new Date(5),
      /1970-01-01T00:00:00.005Z is a point in time, not a length of time .*sleepUntil\(name, date\) and startAt.*"2 days"/,
    ],
    [new Date(Number.NaN), /\(a Date\) is a point in time/],
  ])("refuses %o", (duration, message) => {
    const parse = () => parseDuration(duration as Duration, "timeout");
    expect(parse).toThrow(InvalidInputError);
    expect(parse).toThrow(message);
    expect(parse).toThrow(/^The timeout .*write "2 days", "1h 30m", "250ms"/);
  });

  test("returns whole milliseconds or throws an InvalidInputError for any value", () => {
    fc.assert(
      fc.property(fc.anything(), (value) => {
        try {
          const ms = parseDuration(value as Duration);
          expect(Number.isSafeInteger(ms) && ms >= 0).toBe(true);
        } catch (error) {
          expect(error).toBeInstanceOf(InvalidInputError);
        }
      }),
    );
  });
});

describe("formatDuration", () => {
  test.each([
    [0, "0ms"],
    [250, "250ms"],
    [999.7, "1s"],
    [1000, "1s"],
    [1500, "1.5s"],
    [9_960, "10s"],
    [45_000, "45s"],
    [90_000, "1m 30s"],
    [59_999, "1m"],
    [90 * MINUTE, "1h 30m"],
    [HOUR, "1h"],
    [HOUR + SECOND, "1h"],
    [DAY - 1, "1 day"],
    [DAY, "1 day"],
    [2 * DAY, "2 days"],
    [2 * DAY + 3 * HOUR + 40 * MINUTE, "2 days 4h"],
    [-1500, "-1.5s"],
    [Number.POSITIVE_INFINITY, "Infinity"],
  ])("%d is %s", (ms, text) => {
    expect(formatDuration(ms)).toBe(text);
  });

  test("returns a text that parses to the same duration, up to rounding", () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 1000 * 365 * DAY }), (ms) => {
        const back = parseDuration(formatDuration(ms));
        expect(Math.abs(back - ms)).toBeLessThanOrEqual(Math.max(50, ms * 0.05));
        expect(formatDuration(back)).toBe(formatDuration(ms));
      }),
    );
  });
});
