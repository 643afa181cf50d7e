import { describe, expect, test } from "vitest";
import { InvalidInputError } from "../errors/errors.js";
import { type OffsetChange, Zone } from "./zone.js";

const MINUTE = 60_000;
const at = (text: string) => Date.parse(text);

/** All changes in these years, as `2026-03-29T01:00Z 60 120`. */
const changes = (timeZone: string, from: number, to: number): string[] => {
  const zone = new Zone(timeZone);
  const found: OffsetChange[] = [];
  const until = Date.UTC(to + 1, 0, 1);
  for (let after = Date.UTC(from, 0, 1); ; ) {
    const change = zone.firstChange(after, until);
    if (change === null) break;
    found.push(change);
    after = change.at;
  }
  return found.map(
    (change) =>
      `${new Date(change.at).toISOString().replace(":00.000", "")} ${change.beforeMs / MINUTE} ${change.afterMs / MINUTE}`,
  );
};

describe("the changes of an offset", () => {
  test.each([
    ["UTC", 1970, 2200, []],
    ["Asia/Kolkata", 1970, 2200, []],
    ["Europe/Berlin", 2026, 2026, ["2026-03-29T01:00Z 60 120", "2026-10-25T01:00Z 120 60"]],
    ["Australia/Lord_Howe", 2026, 2026, ["2026-04-04T15:00Z 660 630", "2026-10-03T15:30Z 630 660"]],
    [
      "Pacific/Apia",
      2011,
      2011,
      ["2011-04-02T14:00Z -600 -660", "2011-09-24T14:00Z -660 -600", "2011-12-30T10:00Z -600 840"],
    ],
    ["Africa/Monrovia", 1970, 1975, ["1972-01-07T00:44:30.000Z -44.5 0"]],
    // Two changes within a week.
    [
      "America/Recife",
      2000,
      2000,
      ["2000-02-27T02:00Z -120 -180", "2000-10-08T03:00Z -180 -120", "2000-10-15T02:00Z -120 -180"],
    ],
  ])("of %s from %d to %d", (timeZone, from, to, expected) => {
    expect(changes(timeZone, from, to)).toEqual(expected);
  });

  test("are found from both sides, and the limits of a search are (after, until]", () => {
    const zone = new Zone("Europe/Berlin");
    const spring = { at: at("2026-03-29T01:00Z"), beforeMs: 60 * MINUTE, afterMs: 120 * MINUTE };
    const autumn = { at: at("2026-10-25T01:00Z"), beforeMs: 120 * MINUTE, afterMs: 60 * MINUTE };
    expect(zone.firstChange(spring.at - 1, spring.at)).toEqual(spring);
    expect(zone.firstChange(spring.at, autumn.at - 1)).toBeNull();
    expect(zone.firstChange(spring.at, autumn.at)).toEqual(autumn);
    expect(zone.firstChange(autumn.at, spring.at)).toBeNull();
    expect(zone.lastChange(spring.at, autumn.at)).toEqual(autumn);
    expect(zone.lastChange(spring.at, autumn.at - 1)).toBeNull();
    expect(zone.lastChange(spring.at - 1, autumn.at - 1)).toEqual(spring);
    expect(zone.lastChange(at("2020-01-01T00:00Z"), at("2026-03-01T00:00Z"))?.at).toBe(at("2025-10-26T01:00Z"));
  });
});

test("an offset changes at the instant of the change", () => {
  const zone = new Zone("Europe/Berlin");
  for (const year of [1980, 1996, 2026, 2037, 2100, 2200]) {
    for (const { month, before, after } of [
      { month: 3, before: 60, after: 120 },
      { month: 9, before: 120, after: 60 },
    ]) {
      const change = zone.firstChange(Date.UTC(year, month - 1, 10), Date.UTC(year, month + 2, 1));
      expect(zone.offsetAt(change!.at - 1)).toBe(before * MINUTE);
      expect(zone.offsetAt(change!.at)).toBe(after * MINUTE);
    }
  }
});

test("all offsets of a zone are those that Intl shows", () => {
  for (const timeZone of ["America/Nuuk", "Africa/Casablanca", "Antarctica/Troll", "Africa/Monrovia", "Asia/Gaza"]) {
    const zone = new Zone(timeZone);
    const format = new Intl.DateTimeFormat("sv", { timeZone, dateStyle: "short", timeStyle: "medium" });
    for (let instant = 0; instant < Date.UTC(2100, 0, 1); instant += 20 * 86_400_000 + 12_345_000)
      expect(zone.offsetAt(instant)).toBe(at(`${format.format(instant).replace(" ", "T")}Z`) - instant);
  }
});

test("a zone that this runtime does not have is an InvalidInputError", () => {
  expect(() => new Zone("Mars/Olympus_Mons").offsetAt(0)).toThrow(InvalidInputError);
  expect(() => new Zone("Mars/Olympus_Mons").offsetAt(0)).toThrow(
    'The zone data of this runtime does not have the time zone "Mars/Olympus_Mons"; update the runtime',
  );
});
