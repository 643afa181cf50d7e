import { describe, expect, test } from "vitest";
import { describeClockChange, instantOfLocal, isKnownZone, zoneFieldValue, zoneText } from "./zone-time.js";

const berlin = "Europe/Berlin";

describe("zoneText", () => {
  test.each([
    [berlin, "2026-11-18T01:30:00Z", "Wed 2026-11-18 02:30"],
    [berlin, "2026-07-01T22:30:15Z", "Thu 2026-07-02 00:30:15"],
    ["UTC", "2026-11-18T23:59:00Z", "Wed 2026-11-18 23:59"],
    ["America/St_Johns", "2026-01-01T03:00:00Z", "Wed 2025-12-31 23:30"],
    ["Not/A_Zone", "2026-01-01T03:00:00Z", "Thu 2026-01-01 03:00"],
  ])("in %s, %s is %s", (zone, at, text) => {
    expect(zoneText(zone, Date.parse(at))).toBe(text);
  });
});

describe("instantOfLocal", () => {
  test.each([
    [berlin, "2026-11-18T02:30", "2026-11-18T01:30:00.000Z"],
    [berlin, "2026-07-01T02:30", "2026-07-01T00:30:00.000Z"],
    ["America/New_York", "2026-03-08T12:00", "2026-03-08T16:00:00.000Z"],
  ])("in %s, %s is %s", (zone, local, at) => {
    const instant = instantOfLocal(zone, local) as number;
    expect(new Date(instant).toISOString()).toBe(at);
    expect(zoneFieldValue(zone, instant)).toBe(local);
  });

  test("of a time that occurs twice, it is the first; a time that does not exist is moved by the change", () => {
    expect(instantOfLocal(berlin, "2026-10-25T02:30")).toBe(Date.parse("2026-10-25T00:30:00Z"));
    expect(zoneText(berlin, instantOfLocal(berlin, "2026-03-29T02:30") as number)).toBe("Sun 2026-03-29 03:30");
  });

  test.each(["", "tomorrow", "2026-13-01T00:00", "2026-10-25"])("%j is no local time", (text) => {
    expect(instantOfLocal(berlin, text)).toBe(null);
  });
});

describe("describeClockChange", () => {
  test.each([
    [
      "2026-03-29T01:00:00Z",
      "The clocks go forward from 02:00 to 03:00, so local times in between do not exist. An occurrence in between runs at 03:00.",
    ],
    ["2026-03-29T10:00:00Z", "The clocks go forward from 02:00 to 03:00, so local times in between do not exist."],
    [
      "2026-10-25T00:30:00Z",
      "The clocks go back from 03:00 to 02:00, so local times in between occur twice. This is the first 02:30.",
    ],
    [
      "2026-10-25T01:30:00Z",
      "The clocks go back from 03:00 to 02:00, so local times in between occur twice. This is the second 02:30.",
    ],
    ["2026-10-25T22:30:00Z", "The clocks go back from 03:00 to 02:00, so local times in between occur twice."],
  ])("at %s in Berlin", (at, text) => {
    expect(describeClockChange(berlin, Date.parse(at))).toBe(text);
  });

  test("half an hour, at another time of the day, in another hemisphere", () => {
    expect(describeClockChange("Australia/Lord_Howe", Date.parse("2026-10-03T20:00:00Z"))).toBe(
      "The clocks go forward from 02:00 to 02:30, so local times in between do not exist.",
    );
  });

  test("a browser that does not know the zone says no more than the server", () => {
    expect(isKnownZone("Not/A_Zone")).toBe(false);
    expect(describeClockChange("Not/A_Zone", 0)).toBe("The clocks change on this day.");
  });
});
