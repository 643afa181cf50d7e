import { expect, test } from "vitest";
import { baseRouteOf, isClassRoute } from "../naming/route.js";
import { laneIdOf, laneOf, laneRangeOf, runClassOf } from "./lane.js";

test("the id of a lane has the limit and the key, whatever the key contains", () => {
  for (const key of ["", "a", "tenant 7", "ключ", "a/b"])
    expect(laneOf(laneIdOf("per_tenant", key))).toEqual({ limit: "per_tenant", key });
});

test("keys that a column cannot hold become different hashes", () => {
  const keys = ["x".repeat(300), `${"x".repeat(299)}y`, "a\u0000b", "a\tb", "\ud800"];
  const ids = keys.map((key) => laneIdOf("l".repeat(200), key));
  expect(new Set(ids).size).toBe(keys.length);
  for (const id of ids) {
    expect(Buffer.byteLength(id)).toBeLessThanOrEqual(255);
    expect(laneOf(id).limit).toBe("l".repeat(200));
  }
});

test("the lanes of a limit are a range of ids that contains no lane of another", () => {
  const [from, to] = laneRangeOf("api");
  const isInRange = (id: string) => id >= from && id < to;
  expect(["", "a", "zzz"].map((key) => isInRange(laneIdOf("api", key)))).toEqual([true, true, true]);
  expect(["ap", "api2", "api_b", "b"].map((limit) => isInRange(laneIdOf(limit, "a")))).toEqual(Array(4).fill(false));
});

test("the same route, version, lanes and share are the same class, in any order of the lanes", () => {
  const { id } = runClassOf("w", "v", ["b", "a"], "s");
  expect(runClassOf("w", "v", ["a", "b", "a"], "s").id).toBe(id);
  const others = [
    runClassOf("w2", "v", ["a", "b"], "s"),
    runClassOf("w", "v2", ["a", "b"], "s"),
    runClassOf("w", "v", ["a"], "s"),
    runClassOf("w", "v", ["a", "b"], "t"),
  ];
  for (const other of others) expect(other.id).not.toBe(id);
  expect(isClassRoute(id)).toBe(true);
  expect(baseRouteOf(id)).toBe("w");
  for (const route of ["w", "w\tqueue", "\tgraph"])
    expect([isClassRoute(route), baseRouteOf(route)]).toEqual([false, route]);
});
