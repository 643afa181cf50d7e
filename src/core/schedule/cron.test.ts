import { describe, expect, test } from "vitest";
import { InvalidInputError } from "../errors/errors.js";
import { cronExpression, parseCron } from "./cron.js";
import { FIELD_KINDS, numbersOf } from "./cron-field.js";

const DAY = 86_400_000;

const fieldsOf = (cron: string): number[][] => {
  const { minute, hour, dayOfMonth, month, dayOfWeek } = cronExpression(cron);
  return [minute, hour, dayOfMonth, month, dayOfWeek].map((field, index) => numbersOf(FIELD_KINDS[index]!, field));
};

/** The days of a month that match, such as `2026-02`. */
const daysIn = (cron: string, month: string): number[] => {
  const { days } = cronExpression(`0 0 ${cron}`);
  const first = Date.parse(`${month}-01T00:00Z`) / DAY;
  return Array.from({ length: 31 }, (_, index) => index + 1).filter(
    (date) => new Date((first + date - 1) * DAY).toISOString().startsWith(month) && days.has(first + date - 1),
  );
};

const range = (from: number, to: number, step = 1) =>
  Array.from({ length: Math.floor((to - from) / step) + 1 }, (_, index) => from + index * step);

describe("the numbers of a field", () => {
  test.each<[string, number, number[]]>([
    ["* * * * *", 0, range(0, 59)],
    ["7 * * * *", 0, [7]],
    ["5,1,5,3 * * * *", 0, [1, 3, 5]],
    ["10-13 * * * *", 0, [10, 11, 12, 13]],
    ["*/15 * * * *", 0, [0, 15, 30, 45]],
    ["*/45 * * * *", 0, [0, 45]],
    ["*/60 * * * *", 0, [0]],
    ["5/20 * * * *", 0, [5, 25, 45]],
    ["10-20/5 * * * *", 0, [10, 15, 20]],
    ["58-1 * * * *", 0, [0, 1, 58, 59]],
    ["50-10/5 * * * *", 0, [0, 5, 10, 50, 55]],
    ["0 22-2 * * *", 1, [0, 1, 2, 22, 23]],
    ["0 0 28-3 * *", 2, [1, 2, 3, 28, 29, 30, 31]],
    ["0 0 ? * *", 2, range(1, 31)],
    ["0 0 1 JAN,dec *", 3, [1, 12]],
    ["0 0 1 NOV-FEB *", 3, [1, 2, 11, 12]],
    ["0 0 1 1/3 *", 3, [1, 4, 7, 10]],
    ["0 0 * * 0", 4, [0]],
    ["0 0 * * 7", 4, [0]],
    ["0 0 * * sun", 4, [0]],
    ["0 0 * * 0-7", 4, range(0, 6)],
    ["0 0 * * 5-7", 4, [0, 5, 6]],
    ["0 0 * * 7-2", 4, [0, 1, 2]],
    ["0 0 * * FRI-MON", 4, [0, 1, 5, 6]],
    ["0 0 * * MON-FRI/2", 4, [1, 3, 5]],
    ["0 0 * * */3", 4, [0, 3, 6]],
    ["0 0 * * 5/1", 4, [5, 6]],
    ["0 0 * * 7/2", 4, [0, 2, 4, 6]],
    ["0 0 * * ?", 4, range(0, 6)],
  ])("%s", (cron, field, numbers) => {
    expect(fieldsOf(cron)[field]).toEqual(numbers);
  });
});

test.each([
  ["@hourly", "0 * * * *"],
  ["@daily", "0 0 * * *"],
  ["@midnight", "0 0 * * *"],
  ["@weekly", "0 0 * * 0"],
  ["@monthly", "0 0 1 * *"],
  ["@yearly", "0 0 1 1 *"],
  ["@Annually", "0 0 1 1 *"],
])("%s is %s", (name, cron) => {
  expect(fieldsOf(name)).toEqual(fieldsOf(cron));
});

describe("the days of a month", () => {
  test.each<[string, string, number[]]>([
    ["L * *", "2026-02", [28]],
    ["L * *", "2028-02", [29]],
    ["L * *", "2026-04", [30]],
    ["l-3 * *", "2026-03", [28]],
    ["L-30 * *", "2026-03", [1]],
    ["L-30 * *", "2026-04", []],
    ["1,L * *", "2026-04", [1, 30]],
    ["31 * *", "2026-04", []],
    // 2026-08-15 is a Saturday, 2026-08-16 a Sunday.
    ["14W * *", "2026-08", [14]],
    ["15W * *", "2026-08", [14]],
    ["16w * *", "2026-08", [17]],
    // The first is a Saturday, the last a Monday: the nearest day stays in the month.
    ["1W * *", "2026-08", [3]],
    // The last is a Sunday.
    ["31W * *", "2026-05", [29]],
    ["31W * *", "2026-04", []],
    ["LW * *", "2026-05", [29]],
    ["LW * *", "2026-10", [30]],
    ["LW * *", "2026-04", [30]],
    ["* * FRI#2", "2026-05", [8]],
    ["* * 5#1", "2026-05", [1]],
    ["* * 7#5", "2026-05", [31]],
    ["* * SUN#5", "2026-06", []],
    ["* * FRI#L", "2026-05", [29]],
    ["* * FRIL", "2026-05", [29]],
    ["* * MON#L", "2026-05", [25]],
    ["* * 0l", "2026-05", [31]],
    ["* * MON,FRI#1", "2026-05", [1, 4, 11, 18, 25]],
    ["* 2-3 *", "2026-04", []],
    ["? * ?", "2026-02", range(1, 28)],
  ])("%s in %s", (days, month, dates) => {
    expect(daysIn(days, month)).toEqual(dates);
  });

  test("either day is enough if both are restricted", () => {
    expect(daysIn("13 * FRI", "2026-05")).toEqual([1, 8, 13, 15, 22, 29]);
    expect(daysIn("L * SUN#1", "2026-05")).toEqual([3, 31]);
  });

  test("both days must match if one field begins with a star", () => {
    expect(daysIn("*/2 * MON", "2026-05")).toEqual([11, 25]);
    expect(daysIn("1-7 * */2", "2026-05")).toEqual([2, 3, 5, 7]);
    expect(daysIn("?  * FRI", "2026-05")).toEqual([1, 8, 15, 22, 29]);
  });

  test("days are found from month to month, until the end of 2200", () => {
    const { days } = cronExpression("0 0 29 2 *");
    const day = (text: string) => Date.parse(`${text}T00:00Z`) / DAY;
    expect(days.nextFrom(day("2028-02-29"))).toBe(day("2028-02-29"));
    expect(days.nextFrom(day("2028-03-01"))).toBe(day("2032-02-29"));
    expect(days.nextFrom(day("2096-03-01"))).toBe(day("2104-02-29"));
    expect(days.nextFrom(day("2196-03-01"))).toBeNull();
    expect(cronExpression("0 0 31 * SUN#1").days.nextFrom(day("2026-04-06"))).toBe(day("2026-05-03"));
    expect(cronExpression("0 0 * * *").days.nextFrom(day("2200-12-31"))).toBe(day("2200-12-31"));
    expect(cronExpression("0 0 * * *").days.nextFrom(day("2201-01-01"))).toBeNull();
  });
});

test.each([
  ["30 2 * * *", true],
  ["* 2,14 * * *", true],
  ["0 9-17 * * *", true],
  ["@daily", true],
  ["0 * * * *", false],
  ["0 */2 * * *", false],
  ["0 1-9/2 * * *", false],
  ["0 5,* * * *", false],
  ["@hourly", false],
])("%s means times on the clock: %s", (cron, isWallClock) => {
  expect(cronExpression(cron).isWallClock).toBe(isWallClock);
});

describe("refused", () => {
  test.each([
    ["60 * * * *", '"60" in the minute field of "60 * * * *": a minute is 0 to 59.'],
    ["-1 * * * *", '"-1" in the minute field of "-1 * * * *": a minute is 0 to 59.'],
    ["1.5 * * * *", '"1.5" in the minute field'],
    ["1e1 * * * *", '"1e1" in the minute field'],
    ["a * * * *", '"a" in the minute field'],
    ["? * * * *", '"?" in the minute field'],
    ["L * * * *", '"L" in the minute field'],
    ["1-2-3 * * * *", '"1-2-3" in the minute field'],
    ["*-5 * * * *", '"*-5" in the minute field'],
    ["1,,2 * * * *", 'an empty part in the minute field of "1,,2 * * * *": a minute is 0 to 59.'],
    ["*/0 * * * *", '"*/0" in the minute field of "*/0 * * * *": the step behind "/" is 1 to 60.'],
    ["*/x * * * *", 'the step behind "/" is 1 to 60.'],
    ["*/5/2 * * * *", '"*/5/2" in the minute field'],
    ["*/90 * * * *", 'the step behind "/" is 1 to 60; for a longer period write every: "90m".'],
    ["0 */48 * * *", 'the step behind "/" is 1 to 24; for a longer period write every: "48h".'],
    ["0 0 */60 * *", 'the step behind "/" is 1 to 31.'],
    ["0 24 * * *", '"24" in the hour field of "0 24 * * *": an hour is 0 to 23.'],
    ["0 0 0 * *", '"0" in the day-of-month field of "0 0 0 * *": a day of the month is 1 to 31, L (the last)'],
    ["0 0 32W * *", '"32W" in the day-of-month field'],
    ["0 0 L-31 * *", '"L-31" in the day-of-month field'],
    ["0 0 1 13 *", '"13" in the month field of "0 0 1 13 *": a month is 1 to 12 or JAN to DEC.'],
    ["0 0 1 JUNE *", 'a month is 1 to 12 or JAN to DEC; did you mean "JUN"?'],
    ["0 0 1 ? *", '"?" in the month field'],
    ["0 0 * * 8", '"8" in the day-of-week field of "0 0 * * 8": a day of the week is 0 to 7 or SUN to SAT, FRI#2'],
    ["0 0 * * Monday", '; did you mean "MON"?'],
    ["0 0 * * MUN", '; did you mean "SUN"?'],
    ["0 0 * * L", '"L" in the day-of-week field'],
    [
      "0 0 * * FRI#6",
      '"FRI#6" in the day-of-week field of "0 0 * * FRI#6": a month has at most five of each day, #1 to #5.',
    ],
    ["0 0 * * FRI-SUN#2", '"FRI-SUN#2" in the day-of-week field'],
    [
      "",
      'has no fields in the cron expression "", which takes five: minute, hour, day-of-month, month and day-of-week.',
    ],
    ["5", 'has 1 field in the cron expression "5", which takes five'],
    ["* * * *", 'has 4 fields in the cron expression "* * * *", which takes five'],
    [
      "*/30 * * * * *",
      'has 6 fields in the cron expression "*/30 * * * * *", which takes five: minute, hour, day-of-month, month and day-of-week; there is none for seconds, so write every: "30s" for periods below a minute.',
    ],
    ["@dayly", 'has the unknown name "@dayly"; did you mean "@daily"? Write one of @hourly, @daily,'],
    [
      "@reboot",
      'has the unknown name "@reboot"; write one of @hourly, @daily, @midnight, @weekly, @monthly, @yearly, @annually, or five fields.',
    ],
    ["0 0 30 2 *", 'never fires: no month has the days of "0 0 30 2 *".'],
    ["0 0 31 4,6,9,11 *", "never fires"],
    ["0 0 31W 2 *", "never fires"],
    ["0 0 */18 * WED#5", "never fires"],
    [`${"1,".repeat(100)}1 * * * *`, "has a cron expression of 209 characters; the most is 200."],
  ])("%s", (cron, sentence) => {
    const parse = () => parseCron(cron, 'Schedule "nightly_report"');
    expect(parse).toThrow(InvalidInputError);
    expect(parse).toThrow(sentence);
    expect(parse).toThrow(/^Schedule "nightly_report" (has|never)/);
  });

  test("a leap day and a fifth Friday of February exist", () => {
    expect(() => parseCron("0 0 29 2 *", "The schedule")).not.toThrow();
    expect(() => parseCron("0 0 * 2 FRI#5", "The schedule")).not.toThrow();
  });
});
