import { describe, expect, test } from "vitest";
import { describeTiming, isTransitionDay } from "./describe.js";
import { parseTiming, type ScheduleTimingOptions } from "./rule.js";

const described = (options: ScheduleTimingOptions) => describeTiming(parseTiming('schedule "x"', options));

describe("a cron expression", () => {
  test.each([
    ["30 2 * * *", "At 02:30 every day"],
    ["0 0,12 * * *", "At 00:00 and 12:00 every day"],
    ["30 22-2 * * *", "At 00:30, 01:30, 02:30, 22:30 and 23:30 every day"],
    ["0 8-18/5 * * *", "At 08:00, 13:00 and 18:00 every day"],
    ["* * * * *", "Every minute"],
    ["*/15 * * * *", "Every 15 minutes"],
    ["3-59/15 * * * *", "Every 15 minutes, 3 minutes past"],
    ["0 * * * *", "Every hour"],
    ["1 * * * *", "Every hour, 1 minute past"],
    ["5,10,50 * * * *", "At 5, 10 and 50 minutes past every hour"],
    ["*/45 * * * *", "At 0 and 45 minutes past every hour"],
    ["0-29 * * * *", "At 0 to 29 minutes past every hour"],
    ["0 */6 * * *", "Every 6 hours"],
    ["5 */6 * * *", "Every 6 hours from 00:05"],
    ["0 1-23/2 * * *", "Every 2 hours from 01:00"],
    ["5,35 */2 * * *", "At 5 and 35 minutes past every 2 hours"],
    ["5,36 1/2 * * *", "At 5 and 36 minutes past every 2 hours from 01:00"],
    ["* 2 * * *", "Every minute from 02:00 to 02:59"],
    ["*/15 9-17 * * *", "Every 15 minutes from 09:00 to 17:45"],
    ["0 9-17 * * *", "Every hour from 09:00 to 17:00"],
    ["30 8-20/2 * * *", "Every 2 hours from 08:30 to 20:30"],
    ["5,10 9-17 * * *", "At 5 and 10 minutes past the hours 9 to 17 every day"],
    ["1-20 9 * * *", "At 1 to 20 minutes past the hour 9 every day"],
    ["*/10 8,12,17 * * *", "Every 10 minutes of the hours 8, 12 and 17"],
    ["0 9 * * MON-FRI", "At 09:00, Monday to Friday"],
    ["*/15 9-17 * * MON-FRI", "Every 15 minutes from 09:00 to 17:45, Monday to Friday"],
    ["0 0,12 * * SAT,SUN", "At 00:00 and 12:00 every Saturday and Sunday"],
    ["0 9 * * FRI-MON", "At 09:00 every Monday and Friday to Sunday"],
    ["0 9 * 3-10 MON", "At 09:00 every Monday in March to October"],
    ["0 9 * * FRI#2", "At 09:00 on the second Friday of the month"],
    ["0 9 * 1,2 FRIL", "At 09:00 on the last Friday of January and February"],
    ["0 9 * * MON,FRI#1", "At 09:00 every Monday and on the first Friday of the month"],
    ["@weekly", "At 00:00 every Sunday"],
    ["0 0 1 * *", "At 00:00 on day 1 of the month"],
    ["0 0 1,15 * *", "At 00:00 on days 1 and 15 of the month"],
    ["0 0 1-7 * *", "At 00:00 on days 1 to 7 of the month"],
    ["0 0 */2 * *", "At 00:00 on every 2nd day from 1 to 31 of the month"],
    ["0 0 1,2,3,5,L * *", "At 00:00 on days 1 to 3 and 5 and the last day of the month"],
    ["0 0 L-1 * *", "At 00:00 on the 1st day before the last of the month"],
    ["0 0 LW * *", "At 00:00 on the last weekday of the month"],
    ["0 0 15W * *", "At 00:00 on the weekday nearest to day 15 of the month"],
    ["@yearly", "At 00:00 on day 1 of January"],
    ["0 0 29 2 *", "At 00:00 on day 29 of February"],
    ["0 0 * 1 *", "At 00:00 every day in January"],
    ["*/5 * * 1 *", "Every 5 minutes, every day in January"],
    ["0 * 1 * *", "Every hour, on day 1 of the month"],
    ["0 0 13 * FRI", "At 00:00 on day 13 of the month and every Friday"],
    ["0 0 1-31 * FRI", "At 00:00 every day"],
    [
      "0 0 */10 * MON,FRI#1",
      "At 00:00 on every 10th day from 1 to 31 of the month, but only if it is Monday or the first Friday",
    ],
  ])("%s: %s", (cron, text) => {
    expect(described({ cron })).toBe(`${text}, UTC`);
  });

  test("has its zone, and what becomes of times that are skipped or repeated if that is not the default", () => {
    const options = { cron: "30 2 * * *", timeZone: "Europe/Berlin" };
    expect(described(options)).toBe("At 02:30 every day, Europe/Berlin");
    expect(described({ ...options, gap: "skip", repeat: "both" })).toBe(
      "At 02:30 every day, Europe/Berlin, not in an hour that the clocks skip, twice in an hour that the clocks repeat",
    );
    expect(described({ ...options, repeat: "second" })).toBe(
      "At 02:30 every day, Europe/Berlin, the second time in an hour that the clocks repeat",
    );
  });
});

test.each<[ScheduleTimingOptions, string]>([
  [{ every: "45m", offset: "5m" }, "Every 45 minutes, 5 minutes past"],
  [{ every: "1h" }, "Every hour"],
  [{ every: "1h", offset: "1m" }, "Every hour, 1 minute past"],
  [{ every: "90m" }, "Every 1 hour 30 minutes"],
  [{ every: 1500 }, "Every 1 second 500 milliseconds"],
  [{ every: "1 day", offset: "150m" }, "At 02:30 every day, UTC"],
  [{ every: "1 week", offset: "1 day" }, "Every 7 days, 1 day past"],
  [{ at: ["2026-12-24T18:00Z"] }, "Once, 2026-12-24 18:00 UTC"],
  [{ at: ["2026-12-24T18:00:30Z"] }, "Once, 2026-12-24 18:00:30 UTC"],
  [
    { at: ["2026-12-24T18:00Z", "2027-01-01T00:00Z", "2026-12-31T23:59:59.5Z"] },
    "On 3 given dates, from 2026-12-24 18:00 to 2027-01-01 00:00 UTC",
  ],
])("%o: %s", (options, text) => {
  expect(described(options)).toBe(text);
});

test("limits and exceptions follow", () => {
  const limits = { startAt: "2026-01-01T00:00Z", endAt: "2027-01-01T00:00Z" };
  expect(described({ every: "1h", ...limits })).toBe(
    "Every hour, from 2026-01-01 00:00 UTC on, until 2027-01-01 00:00 UTC",
  );
  expect(described({ every: "1h", except: ["2026-12-25"] })).toBe("Every hour, except on 2026-12-25");
  const except = ["2026-12-25", "* * 24-26 12 *", "2026-12-31T23:00Z", "2026-12-27"];
  expect(described({ every: "1h", except })).toBe(
    'Every hour, except on 2026-12-25, when "* * 24-26 12 *" matches, 2026-12-31 23:00 UTC and 1 more',
  );
});

describe("a day on which the clocks change", () => {
  /** The first and the last local hour in these days that are marked. */
  const marked = (timeZone: string, from: string, days: number) => {
    const hours = Array.from({ length: days * 24 }, (_, hour) => Date.parse(from) + hour * 3_600_000);
    return hours
      .filter((instant) => isTransitionDay(timeZone, instant))
      .map((instant) => new Date(instant).toLocaleString("sv", { timeZone }).slice(0, 13))
      .filter((_, index, all) => index === 0 || index === all.length - 1);
  };

  test.each([
    ["Europe/Berlin", "2026-03-20Z", ["2026-03-29 00", "2026-03-29 23"]],
    ["Europe/Berlin", "2026-10-20Z", ["2026-10-25 00", "2026-10-25 23"]],
    ["Europe/Berlin", "2026-07-01Z", []],
    ["UTC", "2026-03-20Z", []],
    // At midnight, the shorter day is the one that begins, and the longer one the one that ends.
    ["Asia/Beirut", "2026-03-20Z", ["2026-03-29 01", "2026-03-29 23"]],
    ["Asia/Beirut", "2026-10-20Z", ["2026-10-24 00", "2026-10-24 23"]],
    ["America/Havana", "2026-10-28Z", ["2026-11-01 00", "2026-11-01 23"]],
    ["America/Scoresbysund", "2026-03-20Z", ["2026-03-28 00", "2026-03-28 22"]],
    // The 30th of December did not exist.
    ["Pacific/Apia", "2011-12-25Z", ["2011-12-31 00", "2011-12-31 23"]],
  ])("%s from %s on", (timeZone, from, hours) => {
    expect(marked(timeZone, from, 14)).toEqual(hours);
  });

  test("is none before 1970 and after 2200", () => {
    for (const instant of [-1e12, 1e13, Number.NaN]) expect(isTransitionDay("Europe/Berlin", instant)).toBe(false);
  });
});
