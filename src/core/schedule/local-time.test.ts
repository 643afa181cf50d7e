import { expect, test } from "vitest";
import { describeInstant, parseLocalInstant } from "./local-time.js";

const at = (iso: string) => Date.parse(iso);

test.each([
  ["Europe/Berlin", "2026-10-25T00:30:00Z", "Sun 2026-10-25 02:30", "+02:00", true],
  ["Europe/Berlin", "2026-10-25T01:30:00Z", "Sun 2026-10-25 02:30", "+01:00", true],
  ["Europe/Berlin", "2026-10-26T01:30:00Z", "Mon 2026-10-26 02:30", "+01:00", false],
  ["America/St_Johns", "2026-01-01T00:00:00Z", "Wed 2025-12-31 20:30", "-03:30", false],
  ["Asia/Kathmandu", "1970-01-01T00:00:00Z", "Thu 1970-01-01 05:30", "+05:30", false],
  ["America/New_York", "1970-01-01T00:00:07Z", "Wed 1969-12-31 19:00:07", "-05:00", false],
  ["UTC", "2026-11-18T21:00:00Z", "Wed 2026-11-18 21:00", "+00:00", false],
])("in %s, %s is %s %s", (timeZone, iso, local, offset, transitionDay) => {
  expect(describeInstant(timeZone, at(iso))).toEqual({ local, offset, transitionDay });
});

test.each([
  ["Europe/Berlin", "2026-11-18", "2026-11-17T23:00:00Z"],
  ["Europe/Berlin", "2026-07-18 14:00", "2026-07-18T12:00:00Z"],
  ["Europe/Berlin", "2026-07-18T14:00:05", "2026-07-18T12:00:05Z"],
  // Repeated: the first of the two. Skipped: as the clocks before the change say.
  ["Europe/Berlin", "2026-10-25 02:30", "2026-10-25T00:30:00Z"],
  ["Europe/Berlin", "2026-10-25 03:00", "2026-10-25T02:00:00Z"],
  ["Europe/Berlin", "2026-03-29 02:30", "2026-03-29T01:30:00Z"],
  ["Europe/Berlin", "2026-03-29 03:00", "2026-03-29T01:00:00Z"],
  ["Pacific/Auckland", "2026-11-18", "2026-11-17T11:00:00Z"],
  ["Pacific/Honolulu", "2026-11-18", "2026-11-18T10:00:00Z"],
  ["UTC", "2026-11-18", "2026-11-18T00:00:00Z"],
])("in %s, %s is %s", (timeZone, text, iso) => {
  expect(parseLocalInstant(timeZone, text)).toBe(at(iso));
});

test.each(["2026-02-30", "2026-11-18T14:00Z", "2026-11-18 25:00", "tomorrow", "1969-12-31", "2300-01-01", ""])(
  "%j is no local time",
  (text) => {
    expect(parseLocalInstant("Europe/Berlin", text)).toBeNull();
  },
);
