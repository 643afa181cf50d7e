import { describe, expect, test } from "vitest";
import { countInstants, jitterOf, lastInstant, minimumGapMs, nextInstant, nextInstants } from "./instants.js";
import { parseTiming, type ScheduleTimingOptions } from "./rule.js";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const YEAR_2201 = Date.UTC(2201, 0, 1);

const timingOf = (options: ScheduleTimingOptions) => parseTiming('schedule "x"', options);
const cron = (expression: string, timeZone = "UTC", options: ScheduleTimingOptions = {}) =>
  timingOf({ cron: expression, timeZone, ...options });
const at = (text: string) => Date.parse(text);
const texts = (instants: readonly number[]) =>
  instants.map((instant) => new Date(instant).toISOString().replace(/(:00)?\.000Z$/, "Z"));
/** The next instants, in UTC, as `2026-03-29T01:00Z`. */
const next = (options: ScheduleTimingOptions, after: string, count = 3) =>
  texts(nextInstants(timingOf(options), at(after), count));

describe("an instant is after the given one", () => {
  test("and not the same", () => {
    const daily = cron("30 2 * * *");
    expect(texts([nextInstant(daily, at("2026-01-01T02:30Z") - 1)!])).toEqual(["2026-01-01T02:30Z"]);
    expect(texts([nextInstant(daily, at("2026-01-01T02:30Z"))!])).toEqual(["2026-01-02T02:30Z"]);
  });

  test("within the years 1970 to 2200", () => {
    const minutely = cron("* * * * *");
    for (const after of [Number.NEGATIVE_INFINITY, -5 * DAY, -1]) expect(nextInstant(minutely, after)).toBe(0);
    expect(nextInstant(minutely, YEAR_2201 - MINUTE - 1)).toBe(YEAR_2201 - MINUTE);
    for (const after of [YEAR_2201 - MINUTE, YEAR_2201, Number.POSITIVE_INFINITY, Number.NaN])
      expect(nextInstant(minutely, after)).toBeNull();
    expect(nextInstant(timingOf({ every: "1h" }), YEAR_2201 - HOUR)).toBeNull();
    expect(nextInstants(cron("0 0 29 2 *"), at("2190-01-01T00:00Z"), 5)).toHaveLength(2);
    expect(nextInstants(cron("0 0 29 2 *", "Europe/Berlin"), at("2190-01-01T00:00Z"), 5)).toHaveLength(2);
    // The first minutes of 1970 are still 1969 in America.
    expect(texts([nextInstant(cron("0 20 31 12 *", "America/New_York"), -1)!])).toEqual(["1970-01-01T01:00Z"]);
  });

  test("and as many as are asked for", () => {
    expect(nextInstants(cron("@daily"), 0, 0)).toEqual([]);
    expect(nextInstants(cron("@daily"), 0, 2)).toEqual([DAY, 2 * DAY]);
    expect(nextInstants(timingOf({ at: [new Date(5)] }), 0, 2)).toEqual([5]);
  });
});

describe("a fixed time that the clocks skip", () => {
  test("is shifted to the first instant after the gap", () => {
    expect(next({ cron: "30 2 * * *", timeZone: "Europe/Berlin" }, "2026-03-28T00:00Z")).toEqual([
      "2026-03-28T01:30Z",
      "2026-03-29T01:00Z",
      "2026-03-30T00:30Z",
    ]);
  });

  test("is left out with gap: skip", () => {
    expect(next({ cron: "30 2 * * *", timeZone: "Europe/Berlin", gap: "skip" }, "2026-03-28T00:00Z", 2)).toEqual([
      "2026-03-28T01:30Z",
      "2026-03-30T00:30Z",
    ]);
  });

  test("is one instant with others that are shifted there, and with one that is there anyway", () => {
    const options = { cron: "0,20,40 2,3 * * *", timeZone: "Europe/Berlin" };
    expect(next(options, "2026-03-29T00:00Z", 4)).toEqual([
      "2026-03-29T01:00Z",
      "2026-03-29T01:20Z",
      "2026-03-29T01:40Z",
      "2026-03-30T00:00Z",
    ]);
  });

  test("is not shifted if the gap begins right after it or ends with it", () => {
    expect(next({ cron: "59 1 * * *", timeZone: "Europe/Berlin" }, "2026-03-29T00:00Z", 2)).toEqual([
      "2026-03-29T00:59Z",
      "2026-03-29T23:59Z",
    ]);
    expect(next({ cron: "0 3 * * *", timeZone: "Europe/Berlin" }, "2026-03-28T12:00Z", 2)).toEqual([
      "2026-03-29T01:00Z",
      "2026-03-30T01:00Z",
    ]);
    expect(next({ cron: "0 2 * * *", timeZone: "Europe/Berlin" }, "2026-03-28T12:00Z", 1)).toEqual([
      "2026-03-29T01:00Z",
    ]);
  });

  test("is shifted only on the days that the expression has", () => {
    const options = { cron: "30 2 * * MON-SAT", timeZone: "Europe/Berlin" };
    expect(next(options, "2026-03-28T12:00Z", 1)).toEqual(["2026-03-30T00:30Z"]);
  });

  test("by half an hour on Lord Howe Island, by two hours at Troll", () => {
    expect(next({ cron: "15 2 * * *", timeZone: "Australia/Lord_Howe" }, "2026-10-03T00:00Z", 2)).toEqual([
      "2026-10-03T15:30Z",
      "2026-10-04T15:15Z",
    ]);
    expect(next({ cron: "30 2 * * *", timeZone: "Antarctica/Troll" }, "2026-03-29T00:00Z", 2)).toEqual([
      "2026-03-29T01:00Z",
      "2026-03-30T00:30Z",
    ]);
  });

  test("at midnight in Beirut, Havana and Cairo", () => {
    expect(next({ cron: "@daily", timeZone: "Asia/Beirut" }, "2026-03-28T00:00Z", 2)).toEqual([
      "2026-03-28T22:00Z",
      "2026-03-29T21:00Z",
    ]);
    expect(next({ cron: "@daily", timeZone: "America/Havana" }, "2026-03-07T12:00Z", 2)).toEqual([
      "2026-03-08T05:00Z",
      "2026-03-09T04:00Z",
    ]);
    expect(next({ cron: "30 0 * * FRI", timeZone: "Africa/Cairo" }, "2026-04-22T12:00Z", 1)).toEqual([
      "2026-04-23T22:00Z",
    ]);
  });

  test("on the whole day that Samoa skipped in 2011", () => {
    expect(next({ cron: "30 2 * * *", timeZone: "Pacific/Apia" }, "2011-12-29T00:00Z", 3)).toEqual([
      "2011-12-29T12:30Z",
      "2011-12-30T10:00Z",
      "2011-12-30T12:30Z",
    ]);
    expect(next({ cron: "30 2 30 12 *", timeZone: "Pacific/Apia" }, "2011-01-01T00:00Z", 1)).toEqual([
      "2011-12-30T10:00Z",
    ]);
    expect(next({ cron: "30 2 30 12 *", timeZone: "Pacific/Apia", gap: "skip" }, "2011-01-01T00:00Z", 1)).toEqual([
      "2012-12-29T12:30Z",
    ]);
  });
});

describe("a fixed time that the clocks repeat", () => {
  const options = { cron: "30 2 * * *", timeZone: "Europe/Berlin" };
  const first = "2026-10-25T00:30Z";
  const second = "2026-10-25T01:30Z";
  const dayAfter = "2026-10-26T01:30Z";

  test("is the first one, the second one or both", () => {
    const after = "2026-10-24T12:00Z";
    expect(next(options, after, 2)).toEqual([first, dayAfter]);
    expect(next({ ...options, repeat: "first" }, after, 2)).toEqual([first, dayAfter]);
    expect(next({ ...options, repeat: "second" }, after, 2)).toEqual([second, dayAfter]);
    expect(next({ ...options, repeat: "both" }, after, 3)).toEqual([first, second, dayAfter]);
  });

  test("is not found again by a search that begins between both", () => {
    for (const after of [first, "2026-10-25T00:59Z", "2026-10-25T01:00Z", "2026-10-25T01:10Z"]) {
      expect(next(options, after, 1)).toEqual([dayAfter]);
      expect(next({ ...options, repeat: "second" }, after, 1)).toEqual([second]);
      expect(next({ ...options, repeat: "both" }, after, 1)).toEqual([second]);
    }
    expect(next({ ...options, repeat: "both" }, second, 1)).toEqual([dayAfter]);
  });

  test("is not one at the edges of the hour: 02:00 is repeated, 03:00 and 01:59 are not", () => {
    for (const repeat of ["first", "second", "both"] as const) {
      expect(next({ ...options, repeat, cron: "0 3 * * *" }, "2026-10-25T00:00Z", 1)).toEqual(["2026-10-25T02:00Z"]);
      expect(next({ ...options, repeat, cron: "59 1 * * *" }, "2026-10-24T12:00Z", 2)).toEqual([
        "2026-10-24T23:59Z",
        "2026-10-26T00:59Z",
      ]);
    }
    expect(next({ ...options, repeat: "second", cron: "0 2 * * *" }, "2026-10-24T12:00Z", 1)).toEqual([
      "2026-10-25T01:00Z",
    ]);
    expect(next({ ...options, cron: "0 2 * * *" }, "2026-10-24T12:00Z", 1)).toEqual(["2026-10-25T00:00Z"]);
  });

  test("before midnight, on the evening of the day before", () => {
    expect(next({ cron: "30 23 * * *", timeZone: "Asia/Beirut" }, "2026-10-24T12:00Z", 2)).toEqual([
      "2026-10-24T20:30Z",
      "2026-10-25T21:30Z",
    ]);
  });
});

describe("an expression with a wildcard or a step in the hour", () => {
  test("fires in both of the repeated hours", () => {
    expect(next({ cron: "30 * * * *", timeZone: "Europe/Berlin" }, "2026-10-24T23:00Z", 4)).toEqual([
      "2026-10-24T23:30Z",
      "2026-10-25T00:30Z",
      "2026-10-25T01:30Z",
      "2026-10-25T02:30Z",
    ]);
    expect(next({ cron: "30 */2 * * *", timeZone: "Europe/Berlin", repeat: "second" }, "2026-10-25T00:00Z", 2)).toEqual(
      ["2026-10-25T00:30Z", "2026-10-25T01:30Z"],
    );
  });

  test("does not fire in a gap", () => {
    expect(next({ cron: "30 * * * *", timeZone: "Europe/Berlin", gap: "shift" }, "2026-03-29T00:00Z", 2)).toEqual([
      "2026-03-29T00:30Z",
      "2026-03-29T01:30Z",
    ]);
    expect(next({ cron: "0 2-3/1 * * *", timeZone: "Europe/Berlin" }, "2026-03-29T00:00Z", 2)).toEqual([
      "2026-03-29T01:00Z",
      "2026-03-30T00:00Z",
    ]);
  });
});

describe("zones", () => {
  test("Morocco goes back for Ramadan", () => {
    const options = { cron: "0 9 * * *", timeZone: "Africa/Casablanca" };
    expect(next(options, "2026-02-14T12:00Z", 2)).toEqual(["2026-02-15T09:00Z", "2026-02-16T09:00Z"]);
    expect(next(options, "2026-03-21T12:00Z", 2)).toEqual(["2026-03-22T08:00Z", "2026-03-23T08:00Z"]);
  });

  test("Greenland moved its zone and its hours", () => {
    const options = { cron: "0 12 * * *", timeZone: "America/Nuuk" };
    expect(next(options, "2022-01-01T00:00Z", 1)).toEqual(["2022-01-01T15:00Z"]);
    expect(next(options, "2024-01-01T00:00Z", 1)).toEqual(["2024-01-01T14:00Z"]);
    expect(next(options, "2024-06-01T00:00Z", 1)).toEqual(["2024-06-01T13:00Z"]);
  });

  test("Liberia had an offset with seconds until 1972", () => {
    const options = { cron: "0 12 * * *", timeZone: "Africa/Monrovia" };
    expect(next(options, "1972-01-05T00:00Z", 3)).toEqual([
      "1972-01-05T12:44:30Z",
      "1972-01-06T12:44:30Z",
      "1972-01-07T12:00Z",
    ]);
  });

  test("the zone of the process does not matter", () => {
    const zone = process.env.TZ;
    try {
      process.env.TZ = "Asia/Kolkata";
      expect(next({ cron: "30 2 * * *" }, "2026-01-01T00:00Z", 1)).toEqual(["2026-01-01T02:30Z"]);
    } finally {
      if (zone === undefined) delete process.env.TZ;
      else process.env.TZ = zone;
    }
  });

  test("a zone keeps its instants while many others are used", () => {
    const daily = cron("30 2 * * *", "Europe/Berlin");
    const before = nextInstants(daily, at("2026-01-01T00:00Z"), 500);
    for (const timeZone of Intl.supportedValuesOf("timeZone")) nextInstant(cron("@daily", timeZone), 0);
    expect(nextInstants(cron("30 2 * * *", "Europe/Berlin"), at("2026-01-01T00:00Z"), 500)).toEqual(before);
    expect(nextInstants(daily, at("2026-01-01T00:00Z"), 500)).toEqual(before);
  });
});

describe("every", () => {
  test("counts from the Unix epoch, plus the offset", () => {
    expect(nextInstants(timingOf({ every: "45m" }), 0, 2)).toEqual([45 * MINUTE, 90 * MINUTE]);
    expect(nextInstants(timingOf({ every: "45m" }), -1, 1)).toEqual([0]);
    expect(nextInstants(timingOf({ every: "45m", offset: "5m" }), -1, 2)).toEqual([5 * MINUTE, 50 * MINUTE]);
    expect(next({ every: "1 day", offset: "2h" }, "2026-01-01T02:00Z", 1)).toEqual(["2026-01-02T02:00Z"]);
    expect(nextInstants(timingOf({ every: 1500 }), 1_000_000_000_000, 2)).toEqual([
      1_000_000_000_500, 1_000_000_002_000,
    ]);
  });
});

describe("at", () => {
  test("are the given instants, in their order", () => {
    const timing = timingOf({ at: [new Date(50), new Date(10), new Date(30)] });
    expect(nextInstants(timing, -1, 9)).toEqual([10, 30, 50]);
    expect(nextInstants(timing, 10, 9)).toEqual([30, 50]);
    expect(nextInstant(timing, 50)).toBeNull();
  });
});

describe("limits", () => {
  test("no instant is before startAt or after endAt, and both are instants themselves", () => {
    const limits = { startAt: "2026-01-02T00:00Z", endAt: "2026-01-04T00:00Z" };
    expect(next({ cron: "@daily", ...limits }, "2020-01-01T00:00Z", 9)).toEqual([
      "2026-01-02T00:00Z",
      "2026-01-03T00:00Z",
      "2026-01-04T00:00Z",
    ]);
    expect(next({ every: "1 day", ...limits }, "2026-01-03T00:00Z", 9)).toEqual(["2026-01-04T00:00Z"]);
    const dates = [new Date(0), new Date(limits.startAt), new Date(limits.endAt), new Date(at(limits.endAt) + 1)];
    expect(next({ at: dates, ...limits }, "1969-01-01T00:00Z", 9)).toEqual(["2026-01-02T00:00Z", "2026-01-04T00:00Z"]);
  });
});

describe("exceptions", () => {
  test("days are left out, in the rule's zone", () => {
    expect(
      next({ cron: "0 1,23 * * *", except: ["2026-12-25"], timeZone: "Europe/Berlin" }, "2026-12-24T12:00Z", 3),
    ).toEqual(["2026-12-24T22:00Z", "2026-12-26T00:00Z", "2026-12-26T22:00Z"]);
  });

  test("minutes that an expression matches are left out", () => {
    const options = { cron: "0 */6 * * *", except: ["* 0-6 * * *", "* * 25 12 *", "0 18 26 12 *"] };
    expect(next(options, "2026-12-24T13:00Z", 4)).toEqual([
      "2026-12-24T18:00Z",
      "2026-12-26T12:00Z",
      "2026-12-27T12:00Z",
      "2026-12-27T18:00Z",
    ]);
  });

  test("instants are left out", () => {
    expect(next({ cron: "@daily", except: [new Date("2026-01-02T00:00Z")] }, "2026-01-01T00:00Z", 1)).toEqual([
      "2026-01-03T00:00Z",
    ]);
    expect(next({ every: "1h", except: ["2026-01-02T00:00+00:00"] }, "2026-01-01T23:00Z", 1)).toEqual([
      "2026-01-02T01:00Z",
    ]);
  });

  test("of every and at are in UTC, and an expression matches all seconds of its minute", () => {
    expect(next({ every: "20s", except: ["30 * * * *"] }, "2026-01-01T00:29:40Z", 1)).toEqual(["2026-01-01T00:31Z"]);
    expect(next({ every: "7h", except: ["2026-01-01", "* * * * MON-WED"] }, "2026-01-01T00:00Z", 1)).toEqual([
      "2026-01-02T04:00Z",
    ]);
    const dates = ["2026-12-24T12:00Z", "2026-12-25T12:00:59.999Z", "2026-12-26T12:00:30Z"];
    expect(next({ at: dates, except: ["0 12 26 12 *"] }, "2026-01-01T00:00Z")).toEqual([
      "2026-12-24T12:00Z",
      "2026-12-25T12:00:59.999Z",
    ]);
  });

  test("a shifted instant is left out by what its own local time matches", () => {
    const options = { cron: "30 2 * * *", timeZone: "Europe/Berlin" };
    expect(next({ ...options, except: ["30 2 * * *"] }, "2026-01-01T00:00Z", 2)).toEqual([
      "2026-03-29T01:00Z",
      "2027-03-28T01:00Z",
    ]);
    expect(next({ ...options, except: ["0 3 * * *"] }, "2026-03-28T12:00Z", 1)).toEqual(["2026-03-30T00:30Z"]);
  });

  test("that leave out almost everything do not slow the search down", () => {
    expect(next({ every: "1s", except: ["* * * 1-11 *", "* * 1-30 12 *"] }, "2026-01-01T00:00Z", 1)).toEqual([
      "2026-12-31T00:00Z",
    ]);
    expect(
      next({ cron: "* * * * *", except: ["0-58 * * * *", "* 0-22 * * *", "* * * * MON-SAT"] }, "2026-01-01T00:00Z", 2),
    ).toEqual(["2026-01-04T23:59Z", "2026-01-11T23:59Z"]);
    expect(next({ every: "2m", except: ["*/2 * * 1-11 *"] }, "2026-01-01T00:00Z", 1)).toEqual(["2026-12-01T00:00Z"]);
  });
});

describe("lastInstant", () => {
  test("is the latest instant in (after, notAfter]", () => {
    const daily = cron("@daily");
    expect(lastInstant(daily, 0, 5 * DAY)).toBe(5 * DAY);
    expect(lastInstant(daily, 0, 5 * DAY - 1)).toBe(4 * DAY);
    expect(lastInstant(daily, 0, DAY)).toBe(DAY);
    expect(lastInstant(daily, 0, DAY - 1)).toBeNull();
    expect(lastInstant(daily, DAY, DAY)).toBeNull();
    expect(lastInstant(daily, DAY, 0)).toBeNull();
    expect(lastInstant(timingOf({ at: [new Date(10), new Date(20)] }), 5, 1e15)).toBe(20);
    expect(lastInstant(timingOf({ cron: "@daily", endAt: new Date(3 * DAY + 5) }), 0, 9 * DAY)).toBe(3 * DAY);
    expect(texts([lastInstant(cron("@yearly"), 0, Number.POSITIVE_INFINITY)!])).toEqual(["2200-01-01T00:00Z"]);
  });

  test("does not walk through all of them", () => {
    const minutely = cron("* * * * *", "Europe/Berlin");
    expect(lastInstant(minutely, 0, at("2199-06-01T00:00:30Z"))).toBe(at("2199-06-01T00:00Z"));
  });
});

describe("countInstants", () => {
  test("counts those in (after, notAfter], up to a cap", () => {
    const hourly = cron("@hourly");
    expect(countInstants(hourly, 0, 5 * HOUR, 100)).toBe(5);
    expect(countInstants(hourly, 0, 5 * HOUR - 1, 100)).toBe(4);
    expect(countInstants(hourly, 0, HOUR - 1, 100)).toBe(0);
    expect(countInstants(hourly, 0, 5 * HOUR, 3)).toBe(3);
    expect(countInstants(hourly, 0, 5 * HOUR, 0)).toBe(0);
    expect(countInstants(timingOf({ at: [new Date(10), new Date(20)] }), 10, 20, 9)).toBe(1);
  });

  test("computes those of a period, within its limits", () => {
    expect(countInstants(timingOf({ every: "1s" }), 0, YEAR_2201 * 2, 1e12)).toBe(YEAR_2201 / 1000 - 1);
    expect(countInstants(timingOf({ every: "1m", offset: "5s" }), 5000, 125_000, 9)).toBe(2);
    expect(countInstants(timingOf({ every: "1m" }), 0, 59_999, 9)).toBe(0);
    expect(countInstants(timingOf({ every: "1m" }), 0, 10 * MINUTE, 9)).toBe(9);
    const limits = { startAt: new Date(3 * MINUTE), endAt: new Date(7 * MINUTE) };
    expect(countInstants(timingOf({ every: "1m", ...limits }), 0, 10 * MINUTE, 99)).toBe(5);
    expect(countInstants(timingOf({ every: "1m", except: ["2-4 * * * *"] }), 0, 10 * MINUTE, 99)).toBe(7);
  });
});

describe("jitterOf", () => {
  test("is the same for every worker, and less than the jitter", () => {
    expect(jitterOf("nightly_report", at("2026-01-01T02:30Z"), 5 * MINUTE)).toBe(258_659);
    for (const jitterMs of [1, 7, HOUR])
      for (let instant = 0; instant < 100; instant++) {
        const jitter = jitterOf("x", instant, jitterMs);
        expect(Number.isInteger(jitter) && jitter >= 0 && jitter < jitterMs).toBe(true);
      }
    expect(jitterOf("x", 0, 0)).toBe(0);
  });

  test("spreads names and instants", () => {
    const byName = new Set(Array.from({ length: 200 }, (_, index) => jitterOf(`schedule ${index}`, 0, HOUR)));
    const byInstant = Array.from({ length: 200 }, (_, index) => jitterOf("x", index * DAY, HOUR));
    expect(byName.size).toBeGreaterThan(190);
    expect(new Set(byInstant).size).toBeGreaterThan(190);
    expect(Math.min(...byInstant)).toBeLessThan(0.1 * HOUR);
    expect(Math.max(...byInstant)).toBeGreaterThan(0.9 * HOUR);
  });
});

describe("minimumGapMs", () => {
  test.each<[ScheduleTimingOptions, number]>([
    [{ every: "45m" }, 45 * MINUTE],
    [{ cron: "* * * * *" }, MINUTE],
    [{ cron: "0 9,10 * * *" }, HOUR],
    [{ cron: "*/7 * * * *" }, 4 * MINUTE],
    [{ cron: "@daily" }, DAY],
    [{ cron: "@yearly" }, 365 * DAY],
    [{ cron: "0 0 28,L 2 *" }, DAY],
    [{ cron: "0 9 * * MON-FRI" }, DAY],
    // The day of 23 hours, the shifted time, and the hour that is repeated.
    [{ cron: "0 9 * * *", timeZone: "Europe/Berlin" }, 23 * HOUR],
    [{ cron: "30 2 * * *", timeZone: "Europe/Berlin", gap: "skip" }, DAY],
    [{ cron: "30 2,3 * * *", timeZone: "Europe/Berlin" }, 30 * MINUTE],
    [{ cron: "30 2 * * *", timeZone: "Europe/Berlin", repeat: "both" }, HOUR],
    [{ cron: "15 2,3 * 10 *", timeZone: "Australia/Lord_Howe" }, 45 * MINUTE],
    [{ cron: "59 * * * *", timeZone: "Australia/Lord_Howe" }, 30 * MINUTE],
    [{ at: [new Date(5), new Date(100), new Date(50)] }, 45],
    [{ at: [new Date(5)] }, Number.POSITIVE_INFINITY],
    [{ cron: "@daily", startAt: new Date(0), endAt: new Date(DAY - 1) }, Number.POSITIVE_INFINITY],
    [{ cron: "@daily", endAt: new Date(100 * DAY) }, DAY],
    [{ at: [new Date(5), new Date(100), new Date(50)], except: [new Date(50)] }, 95],
  ])("%o", (options, gapMs) => {
    expect(minimumGapMs(timingOf(options))).toBe(gapMs);
  });
});
