import { expect, onTestFinished, test } from "vitest";
import type { Runtime } from "../../runtime/runtime.js";
import { systemRuntime } from "../../runtime/system.js";
import type { Store } from "../../store/contract/store.js";
import { DueSchedules } from "./due-schedules.js";

const silent = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };

/** Looks return these results, and after them that nothing is due. The clock moves only when the test says so. */
async function watch(...results: { readonly changed: number; readonly lost: number }[]) {
  let now = 0;
  const timers = new Map<object, { readonly at: number; readonly run: () => void }>();
  const runtime: Runtime = {
    ...systemRuntime,
    monotonic: () => now,
    random: () => 0.5,
    setTimeout: (run, ms) => {
      const timer = { unref: () => timer } as ReturnType<Runtime["setTimeout"]>;
      timers.set(timer as object, { at: now + ms, run });
      return timer;
    },
    clearTimeout: (timer) => void timers.delete(timer as object),
  };
  const looks: number[] = [];
  const service = {
    interest: { app: null, setKey: "" },
    claimSet: async () => {},
    fireDue: async () => {
      looks.push(now);
      return results.shift() ?? { changed: 0, lost: 0 };
    },
    nextAt: async () => null,
  };
  const store = { now: async () => now } as unknown as Store;
  const schedules = new DueSchedules({ service, store, log: silent, runtime, isDriven: () => false });
  onTestFinished(() => schedules.stop());
  await schedules.start();
  const settle = () => new Promise((resolve) => setImmediate(resolve));
  const advance = async (ms: number) => {
    now += ms;
    for (const [timer, { at, run }] of [...timers]) if (at <= now && timers.delete(timer)) run();
    await settle();
  };
  await settle();
  return { schedules, looks, advance };
}

test("a hint is followed at once by a worker that was not forestalled, and a moment later by one that was", async () => {
  const first = await watch({ changed: 1, lost: 0 });
  first.schedules.onHint();
  await first.advance(0);
  expect(first.looks).toEqual([0, 0]);
  const second = await watch({ changed: 0, lost: 1 });
  second.schedules.onHint();
  await second.advance(0);
  expect(second.looks).toEqual([0]);
  await second.advance(50);
  expect(second.looks).toEqual([0, 50]);
});

test("a worker that finds something due again, because the others are gone, waits no longer", async () => {
  const { schedules, looks, advance } = await watch({ changed: 0, lost: 1 }, { changed: 1, lost: 0 });
  schedules.onHint();
  await advance(50);
  schedules.onHint();
  await advance(0);
  expect(looks).toEqual([0, 50, 50]);
});

test("a stream of hints does not postpone the look", async () => {
  const { schedules, looks, advance } = await watch({ changed: 0, lost: 1 });
  for (let ms = 0; ms < 50; ms += 5) {
    schedules.onHint();
    await advance(5);
  }
  expect(looks).toEqual([0, 50]);
});

test("a worker whose looks change nothing of what is due looks ever less often", async () => {
  const lost = { changed: 0, lost: 1 };
  const { schedules, looks, advance } = await watch(lost, lost, lost, lost);
  for (let ms = 0; ms < 400; ms += 10) {
    schedules.onHint();
    await advance(10);
  }
  expect(looks).toEqual([0, 50, 150, 350]);
});
