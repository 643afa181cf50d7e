import { describe, expect, test } from "vitest";
import { InvalidInputError } from "../errors/errors.js";
import { parseTiming, type ScheduleTimingOptions } from "./rule.js";

const owner = 'schedule "nightly_report"';
const parse = (options: object) => parseTiming(owner, options as ScheduleTimingOptions);
/** Once only, because some rules are searched for two centuries before they are refused. */
function refusal(options: object): Error {
  try {
    parse(options);
  } catch (error) {
    return error as Error;
  }
  return expect.unreachable("The rule was not refused.");
}
const unlimited = { startAt: null, endAt: null, except: [] };

describe("what is stored", () => {
  test("a cron rule has the zone UTC unless another is given, and only what differs from the defaults", () => {
    expect(parse({ cron: " 30  2 * * * " })).toEqual({
      rule: { kind: "cron", cron: "30 2 * * *", timeZone: "UTC" },
      ...unlimited,
    });
    expect(parse({ cron: "@daily", timeZone: "Europe/Berlin", gap: "shift", repeat: "first" }).rule).toEqual({
      kind: "cron",
      cron: "@daily",
      timeZone: "Europe/Berlin",
    });
    expect(parse({ cron: "@daily", gap: "skip", repeat: "both" }).rule).toEqual({
      ...{ kind: "cron", cron: "@daily", timeZone: "UTC", gap: "skip", repeat: "both" },
    });
    expect(parse({ cron: "@daily", repeat: "second" }).rule).toMatchObject({ repeat: "second" });
  });

  test("the name of a zone is kept as it was written, because runtimes prefer different names", () => {
    for (const timeZone of ["Europe/Kyiv", "Europe/Kiev", "US/Pacific", "europe/berlin", "Etc/GMT+2", "CET", "GMT"])
      expect(parse({ cron: "@daily", timeZone }).rule).toMatchObject({ timeZone });
  });

  test("a period and its offset are milliseconds", () => {
    expect(parse({ every: "45m", offset: "5m" })).toEqual({
      rule: { kind: "every", everyMs: 2_700_000, offsetMs: 300_000 },
      ...unlimited,
    });
    expect(parse({ every: { hours: 1 } }).rule).toEqual({ kind: "every", everyMs: 3_600_000, offsetMs: 0 });
    expect(parse({ every: 1000 }).rule).toMatchObject({ everyMs: 1000 });
  });

  test("dates are sorted instants without duplicates", () => {
    const at = ["2026-12-24T18:00:00+01:00", new Date(0), "2026-12-24 17:00Z", "2026-12-24T17:00:00.0005Z"];
    expect(parse({ at }).rule).toEqual({ kind: "at", instants: [0, Date.UTC(2026, 11, 24, 17)] });
    expect(parse({ at: ["2026-12-24T18:00:30.25-0330"] }).rule).toEqual({
      ...{ kind: "at", instants: [Date.UTC(2026, 11, 24, 21, 30, 30, 250)] },
    });
  });

  test("limits are instants, exceptions are expressions, days and instants", () => {
    const limits = { startAt: "2026-01-01T00:00Z", endAt: new Date(Date.UTC(2027, 0, 1)) };
    const except = [" *  * 24-26 12 *", "2026-12-25 ", new Date(5), "2026-12-31T23:00Z", "2026-12-25", "@weekly"];
    expect(parse({ every: "1h", ...limits, except })).toEqual({
      rule: { kind: "every", everyMs: 3_600_000, offsetMs: 0 },
      startAt: Date.UTC(2026, 0, 1),
      endAt: Date.UTC(2027, 0, 1),
      except: ["* * 24-26 12 *", "2026-12-25", 5, Date.UTC(2026, 11, 31, 23), "@weekly"],
    });
  });

  test("options that are undefined are not given", () => {
    expect(
      parse({ cron: "@daily", every: undefined, offset: undefined, except: undefined, timeZone: undefined }),
    ).toEqual({
      rule: { kind: "cron", cron: "@daily", timeZone: "UTC" },
      ...unlimited,
    });
  });
});

describe("refused", () => {
  test.each<[object, string]>([
    [{}, ' does not say when it fires; give it cron: "30 2 * * *", every: "45m" or at: [dates].'],
    [{ cron: "@daily", every: "1h" }, " has both cron and every; it takes one of cron, every and at."],
    [{ every: "1h", at: [] }, " has both every and at; it takes one of cron, every and at."],
    [{ cron: 5 }, ' takes cron as a text such as "30 2 * * *", not as a number.'],
    [{ cron: "99 * * * *" }, ' has "99" in the minute field of "99 * * * *": a minute is 0 to 59.'],
    [{ cron: "@daily", gap: "skipp" }, ' has "skipp" as its gap, which is "shift" or "skip".'],
    [{ cron: "@daily", repeat: 2 }, ' has a number as its repeat, which is "first" or "second" or "both".'],
    [{ cron: "@daily", offset: "1m" }, " has offset with cron, but offset belongs to every."],
    [
      { every: "1h", timeZone: "UTC" },
      " has timeZone with every, but timeZone belongs to cron; every does not depend on a zone.",
    ],
    [{ at: [new Date(0)], gap: "skip" }, " has gap with at, but gap belongs to cron."],
    [{ every: "1h", repeat: "both" }, " has repeat with every, but repeat belongs to cron."],
    [{ every: "999ms" }, " has an every of 999 ms; the shortest period is one second."],
    [{ every: "soon" }, ': the every "soon" is not a duration; write "2 days"'],
    [{ every: "1h", offset: -1 }, ": the offset -1 is negative;"],
    [{ every: "1h", offset: "1h" }, " has an offset of 3600000 ms, which must be less than every (3600000 ms)."],
    [{ at: [] }, " has no date in at, so it never fires; give it at least one."],
    [{ at: "2026-12-24T18:00Z" }, ' takes at as a list, not as "2026-12-24T18:00Z".'],
    [{ at: Array.from({ length: 1001 }, () => new Date(0)) }, " has 1001 entries in at; the most is 1000."],
    [
      { at: [new Date(Number.NaN)] },
      " has an invalid Date in at[0], which is not a point in time; write a Date or a text such as",
    ],
    [{ at: [5] }, " has a number in at[0], which is not a Date and not a text; write"],
    [{ at: [null] }, " has null in at[0], which is not a Date and not a text; write"],
    [
      { at: ["2026-12-24T18:00"] },
      ' has "2026-12-24T18:00" in at[0], which has no zone; write a Date or a text such as "2026-12-24T18:00:00Z" or',
    ],
    [{ at: [new Date(0), "2026-02-29T18:00Z"] }, ' has "2026-02-29T18:00Z" in at[1], which is not a point in time;'],
    [{ at: ["2026-13-01T18:00Z"] }, "which is not a point in time;"],
    [{ at: ["2026-12-01T24:00Z"] }, "which is not a point in time;"],
    [{ at: ["2026-12-01T23:60Z"] }, "which is not a point in time;"],
    [{ at: ["2026-12-01T23:59:60Z"] }, "which is not a point in time;"],
    [{ at: ["2026-12-01T23:59+24:00"] }, "which is not a point in time;"],
    [{ at: ["2026-12-01"] }, "which has no time of day and no zone;"],
    [{ at: ["tomorrow"] }, ' has "tomorrow" in at[0], which is not a point in time;'],
    [{ at: ["1969-12-31T23:59Z"] }, "which is not in the years 1970 to 2200;"],
    [
      { at: [new Date(Date.UTC(2201, 0, 1))] },
      " has 2201-01-01T00:00:00.000Z in at[0], which is not in the years 1970 to 2200;",
    ],
    [{ cron: "@daily", startAt: "soon" }, ' has "soon" in startAt, which is not a point in time;'],
    [{ cron: "@daily", endAt: 5 }, " has a number in endAt,"],
    [
      { cron: "@daily", startAt: "2026-01-02T00:00Z", endAt: "2026-01-01T00:00Z" },
      " never fires: its endAt is before its startAt.",
    ],
    [
      { cron: "@yearly", startAt: "2026-01-02T00:00Z", endAt: "2026-12-31T00:00Z" },
      " never fires: no instant of its cron is left by startAt, endAt and except.",
    ],
    [
      { at: [new Date(0)], except: ["1970-01-01"] },
      " never fires: no instant of its at is left by startAt, endAt and except.",
    ],
    [{ cron: "@daily", except: ["* 0 * * *"] }, " never fires: no instant of its cron"],
    [{ every: "4h", except: ["0 */4 * * *"] }, " never fires: no instant of its every"],
    [{ cron: "@daily", except: "2026-12-25" }, ' takes except as a list, not as "2026-12-25".'],
    [{ cron: "@daily", except: ["2026-02-30"] }, ' has the day "2026-02-30" in except[0], which does not exist.'],
    [{ cron: "@daily", except: ["2026-02-30T00:00Z"] }, ' has "2026-02-30T00:00Z" in except[0],'],
    [{ cron: "@daily", except: [5] }, " has a number in except[0],"],
    [
      { cron: "@daily", except: ["@weekly", "* 25 * * *"] },
      ', in except[1], has "25" in the hour field of "* 25 * * *": an hour is 0 to 23.',
    ],
    [{ cron: "@daily", except: ["christmas"] }, ', in except[0], has 1 field in the cron expression "christmas"'],
  ])("%o", (options, sentence) => {
    const error = refusal(options);
    expect(error).toBeInstanceOf(InvalidInputError);
    expect(error.message).toContain(sentence);
    expect(error.message).toMatch(/^Schedule "nightly_report"/);
  });
});

describe("a zone that is refused", () => {
  test.each<[unknown, string]>([
    [
      "Europe/Berln",
      'has "Europe/Berln" as its timeZone, which is not the name of a zone; did you mean "Europe/Berlin"?',
    ],
    ["europe/berln", 'did you mean "Europe/Berlin"?'],
    ["Berlin", 'did you mean "Europe/Berlin"?'],
    ["New York", 'did you mean "America/New_York"?'],
    ["Mars/Olympus_Mons_North", 'which is not the name of a zone; write one such as "Europe/Berlin" or "UTC".'],
    ["", 'has "" as its timeZone, which is not the name of a zone; write one'],
    [null, "has null as its timeZone, which is not the name of a zone; write one"],
    [2, "has a number as its timeZone, which is not the name of a zone; write one"],
    [
      "+02:00",
      'has "+02:00" as its timeZone, but an offset does not know when the clocks change; write the name of a zone, such as "Europe/Berlin" or "UTC".',
    ],
    ["UTC+2", "but an offset does not know when the clocks change"],
    ["GMT-0330", "but an offset does not know when the clocks change"],
    ["Z", "but an offset does not know when the clocks change"],
    // Intl takes these for Asia/Dhaka, Asia/Kolkata and America/Los_Angeles.
    ["BST", "which is not the name of a zone"],
    ["IST", "which is not the name of a zone"],
    ["pst", "which is not the name of a zone"],
  ])("%o", (timeZone, sentence) => {
    const error = refusal({ cron: "@daily", timeZone });
    expect(error).toBeInstanceOf(InvalidInputError);
    expect(error.message).toContain(sentence);
    expect(error.message).toMatch(/^Schedule "nightly_report" has /);
  });
});
