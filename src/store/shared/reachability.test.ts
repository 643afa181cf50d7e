import { expect, test } from "vitest";
import { describeError, ServerReachability } from "./reachability.js";

function createReachability() {
  const warnings: unknown[][] = [];
  return { warnings, reachability: new ServerReachability((...args) => void warnings.push(args)) };
}

const refused = Object.assign(new Error("connect ECONNREFUSED 127.0.0.1:5432"), { code: "ECONNREFUSED" });

test("an outage is reported once, and once more when the server answers", () => {
  const { warnings, reachability } = createReachability();
  reachability.recordAnswer(reachability.failureCount);
  for (let times = 0; times < 3; times += 1) reachability.recordFailure(refused);
  for (let times = 0; times < 3; times += 1) reachability.recordAnswer(reachability.failureCount);
  expect(warnings).toEqual([
    ["cannot be reached (connect ECONNREFUSED 127.0.0.1:5432); trying again."],
    ["reached again."],
  ]);
  reachability.recordFailure(refused);
  expect(warnings).toHaveLength(3);
});

test("an answer to a statement that was sent before the failure does not end the outage", () => {
  const { warnings, reachability } = createReachability();
  const { failureCount } = reachability;
  reachability.recordFailure(refused);
  reachability.recordAnswer(failureCount);
  expect(warnings).toHaveLength(1);
  const laterCount = reachability.failureCount;
  reachability.recordFailure(refused);
  reachability.recordAnswer(laterCount);
  expect(warnings).toHaveLength(1);
});

test("an error is described by its code and address", () => {
  const withState = Object.assign(new Error("terminating connection\nby an administrator"), { code: "57P01" });
  expect(describeError(withState)).toBe("57P01 terminating connection");
  const ipv6 = Object.assign(new Error("connect ECONNREFUSED ::1:5432"), { code: "ECONNREFUSED" });
  expect(describeError(new AggregateError([ipv6, refused], ""))).toBe(
    "connect ECONNREFUSED ::1:5432, connect ECONNREFUSED 127.0.0.1:5432",
  );
  expect(describeError(Object.assign(new Error(""), { code: "ETIMEDOUT" }))).toBe("ETIMEDOUT");
  expect(describeError(new Error("Connection terminated unexpectedly"))).toBe("Connection terminated unexpectedly");
  expect(describeError("gone")).toBe("gone");
});
