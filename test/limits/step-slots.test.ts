/** The slots that the steps of several workers ask for, without a worker. */
import { limit } from "pawl";
import { expect, test } from "vitest";
import { systemRuntime } from "../../src/runtime/system.js";
import type { RunRecord } from "../../src/store/contract/store.js";
import { MemoryStore } from "../../src/store/memory/index.js";
import { StepSlots } from "../../src/worker/limits/step-slots.js";
import { silent } from "../support/virtual-worlds.js";
import { until } from "../support/waiting.js";

test("a worker that gives a slot back late does not take that of the next attempt, on another worker", async () => {
  const store = new MemoryStore();
  const one = limit("one", { concurrency: 1 });
  const run = { id: "00000000-0000-7000-8000-000000000001", priority: 0, input: "null" } as RunRecord;
  const newWorker = async (id: string) => {
    const worker = { id, name: id, host: "", pid: 1, port: null, routes: [], leaseMs: 60_000 };
    const fence = await store.registerWorker(worker);
    return new StepSlots({
      runtime: systemRuntime,
      store,
      log: silent,
      fence,
      lateCallMs: 1_000,
      onFreed: () => {},
      onLookDue: () => {},
    });
  };
  const ask = (slots: StepSlots) =>
    new Promise<() => void>((resolve) => {
      slots.gateOf({ limit: one, units: 1 }, run, "call").acquire(resolve);
    });
  const [first, second] = [await newWorker("first"), await newWorker("second")];
  const releaseFirst = await ask(first);
  let hasSecond = false;
  const secondAsked = ask(second).then((release) => {
    hasSecond = true;
    return release;
  });
  await second.settled();
  expect(hasSecond).toBe(false);
  releaseFirst();
  await first.settled();
  await until(() => {
    second.onHint();
    return hasSecond;
  });
  expect(await store.limits.slots({ lane: "one\t" }, 10)).toMatchObject([{ owner: "second", isWaiting: false }]);
  (await secondAsked)();
  await second.settled();
  expect(await store.limits.slots({ lane: "one\t" }, 10)).toEqual([]);
  for (const slots of [first, second]) slots.close();
});
