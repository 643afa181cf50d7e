import { expect, test } from "vitest";
import type { Runtime } from "../../runtime/runtime.js";
import { IdSource } from "./new-id.js";

test("ids use the clock and the random bytes of the runtime, fetched for 256 ids at a time", () => {
  let fetched = 0;
  const runtime = {
    now: () => 0x0123456789ab,
    randomBytes: (count: number) => {
      fetched += 1;
      // Each id gets ten bytes, all equal to its number.
      return Uint8Array.from({ length: count }, (_, index) => Math.floor(index / 10));
    },
  } as unknown as Runtime;
  const ids = (count: number, source: IdSource) => Array.from({ length: count }, () => source.next());
  const first = ids(256, new IdSource(runtime));
  expect(fetched).toBe(1);
  expect(new Set(first).size).toBe(256);
  for (const id of first) expect(id).toMatch(/^01234567-89ab-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  fetched = 0;
  expect(ids(257, new IdSource(runtime)).slice(0, 256)).toEqual(first);
  expect(fetched).toBe(2);
});
