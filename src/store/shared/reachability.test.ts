import { expect, test } from "vitest";
import { describeError, ServerReachability } from "./reachability.js";

function createReachability() {
  const warnings: unknown[][] = [];
  return { told: warnings, reach: new ServerReachability((...args) => void warnings.push(args)) };
}

const refused = Object.assign(new Error("connect ECONNREFUSED 127.0.0.1:5432"), { code: "ECONNREFUSED" });

test("that a server cannot be reached is told once, and once when it answers", () => {
  const { told, reach: one } = createReachability();
  one.recordAnswer(one.failureCount);
  for (let times = 0; times < 3; times += 1) one.recordFailure(refused);
  for (let times = 0; times < 3; times += 1) one.recordAnswer(one.failureCount);
  expect(told).toEqual([
    ["cannot be reached (connect ECONNREFUSED 127.0.0.1:5432); trying again."],
    ["reached again."],
  ]);
  one.recordFailure(refused);
  expect(told).toHaveLength(3);
});

test("an answer to what was asked before the server went is no sign that it is back", () => {
  const { told, reach: one } = createReachability();
  const { failureCount } = one;
  one.recordFailure(refused);
  one.recordAnswer(failureCount);
  expect(told).toHaveLength(1);
  const later = one.failureCount;
  one.recordFailure(refused);
  one.recordAnswer(later);
  expect(told).toHaveLength(1);
});

test("a cause is told by its code and address, whatever the driver makes of it", () => {
  const ofState = Object.assign(new Error("terminating connection\nby somebody"), { code: "57P01" });
  expect(describeError(ofState)).toBe("57P01 terminating connection");
  const ipv6 = Object.assign(new Error("connect ECONNREFUSED ::1:5432"), { code: "ECONNREFUSED" });
  expect(describeError(new AggregateError([ipv6, refused], ""))).toBe(
    "connect ECONNREFUSED ::1:5432, connect ECONNREFUSED 127.0.0.1:5432",
  );
  expect(describeError(Object.assign(new Error(""), { code: "ETIMEDOUT" }))).toBe("ETIMEDOUT");
  expect(describeError(new Error("Connection terminated unexpectedly"))).toBe("Connection terminated unexpectedly");
  expect(describeError("gone")).toBe("gone");
});
