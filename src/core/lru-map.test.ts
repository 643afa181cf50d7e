import { expect, test } from "vitest";
import { LruMap } from "./lru-map.js";

test("the entries that were used last are kept, the oldest is dropped", () => {
  const recent = new LruMap<number>(2);
  recent.set("a", 1);
  recent.set("b", 2);
  expect(recent.get("a")).toBe(1);
  recent.set("c", 3);
  expect(recent.get("b")).toBeUndefined();
  expect(recent.get("a")).toBe(1);
  expect(recent.take("c")).toBe(3);
  expect(recent.get("c")).toBeUndefined();
});
