import { expect, test } from "vitest";
import { causeInWords, Reach } from "./reachability.js";

function reach() {
  const told: unknown[][] = [];
  return { told, reach: new Reach((...args) => void told.push(args)) };
}

const refused = Object.assign(new Error("connect ECONNREFUSED 127.0.0.1:5432"), { code: "ECONNREFUSED" });

test("that a server cannot be reached is told once, and once when it answers", () => {
  const { told, reach: one } = reach();
  one.answered(one.losses);
  for (let times = 0; times < 3; times += 1) one.lost(refused);
  for (let times = 0; times < 3; times += 1) one.answered(one.losses);
  expect(told).toEqual([
    ["cannot be reached (connect ECONNREFUSED 127.0.0.1:5432); trying again."],
    ["reached again."],
  ]);
  one.lost(refused);
  expect(told).toHaveLength(3);
});

test("an answer to what was asked before the server went is no sign that it is back", () => {
  const { told, reach: one } = reach();
  const { losses } = one;
  one.lost(refused);
  one.answered(losses);
  expect(told).toHaveLength(1);
  const later = one.losses;
  one.lost(refused);
  one.answered(later);
  expect(told).toHaveLength(1);
});

test("a cause is told by its code and address, whatever the driver makes of it", () => {
  const ofState = Object.assign(new Error("terminating connection\nby somebody"), { code: "57P01" });
  expect(causeInWords(ofState)).toBe("57P01 terminating connection");
  const ipv6 = Object.assign(new Error("connect ECONNREFUSED ::1:5432"), { code: "ECONNREFUSED" });
  expect(causeInWords(new AggregateError([ipv6, refused], ""))).toBe(
    "connect ECONNREFUSED ::1:5432, connect ECONNREFUSED 127.0.0.1:5432",
  );
  expect(causeInWords(Object.assign(new Error(""), { code: "ETIMEDOUT" }))).toBe("ETIMEDOUT");
  expect(causeInWords(new Error("Connection terminated unexpectedly"))).toBe("Connection terminated unexpectedly");
  expect(causeInWords("gone")).toBe("gone");
});
