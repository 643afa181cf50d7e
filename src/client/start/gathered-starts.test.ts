import { expect, test } from "vitest";
import { StoreError } from "../../core/errors/errors.js";
import type { GatherCall } from "../../core/gathering/plan-gathering.js";
import type { Runtime } from "../../runtime/runtime.js";
import type { Store } from "../../store/contract/store.js";
import { GatheredStarts } from "./gathered-starts.js";

test("while the database is unreachable, many starts take no longer to fail than one", async () => {
  let now = 0;
  const runtime = {
    monotonic: () => now,
    setTimeout: (callback: () => void, ms: number) => {
      now += ms;
      queueMicrotask(callback);
      return { unref: () => {} };
    },
    clearTimeout: () => {},
  } as unknown as Runtime;
  const gather = async () => {
    throw new StoreError("The database cannot be reached.", { transient: true });
  };
  const starts = new GatheredStarts({ gatherings: { gather } } as unknown as Store, runtime, () => {});
  const calls = ["a", "b", "c", "d"].map((id) => ({ id, run: { id, input: "1" } }) as unknown as GatherCall);
  const outcomes = await Promise.allSettled(calls.map((call) => starts.start([call])));
  expect(outcomes.map(({ status }) => status)).toEqual(calls.map(() => "rejected"));
  expect(now).toBeLessThan(30_000);
});
