import { expect, test } from "vitest";
import { limit, type StepLimit } from "../../define/limit.js";
import type { Runtime } from "../../runtime/runtime.js";
import type { LimitSettings, StepSlotChanges } from "../../store/contract/limits.js";
import type { RunRecord, Store } from "../../store/contract/store.js";
import { StepSlots } from "./step-slots.js";

const run = { id: "r", workflow: "w", priority: 0, input: "null", tags: [], heroType: null, heroId: null };
const step = (name: string) => ({ limit: limit(name, { concurrency: 1 }), units: 1 });
const settle = () => new Promise((resolve) => setImmediate(resolve));

/** Slots over a store that fails as often as the test says, with timers that fire when it says so. */
function setUp() {
  const timers = new Map<object, { readonly callback: () => void; readonly ms: number }>();
  const runtime = {
    setTimeout: (callback: () => void, ms: number) => {
      const timer = { unref: () => timer };
      timers.set(timer, { callback, ms });
      return timer;
    },
    clearTimeout: (timer: object | null) => void timers.delete(timer ?? {}),
  } as unknown as Runtime;
  const registered: string[] = [];
  const changes: StepSlotChanges[] = [];
  const held = new Map<string, StepSlotChanges["asked"][number]>();
  const failing = { count: 0 };
  let proceed = () => {};
  const limits = {
    register: async (settings: readonly LimitSettings[]) => {
      await new Promise<void>((resolve) => {
        proceed = resolve;
      });
      registered.push(...settings.map(({ name }) => name));
    },
    changeStepSlots: async (change: StepSlotChanges) => {
      changes.push(change);
      await Promise.resolve();
      if (failing.count-- > 0) throw new Error("The connection was lost.");
      for (const { node } of change.released) held.delete(node);
      for (const request of change.asked) held.set(request.node, request);
      return { kind: "granted", at: 0, held: [...held.values()], nextAt: null, looksAt: null, lanesToWake: [] };
    },
  };
  const slots = new StepSlots({
    runtime,
    store: { limits, hasCrossProcessHints: true } as unknown as Store,
    log: { warn: () => {} } as never,
    fence: { workerId: "worker", epoch: 1 },
    lateCallMs: 3_000,
    onFreed: () => {},
    onLookDue: () => {},
  });
  const steps = new Map<string, StepLimit>();
  const gateOf = (name: string) => {
    const limited = steps.get(name) ?? step(name);
    steps.set(name, limited);
    return slots.gateOf(limited, run as unknown as RunRecord, name);
  };
  const acquire = (name: string, onAcquired: (release: () => void) => void = () => {}) =>
    gateOf(name).acquire(onAcquired);
  const fire = async (ofMs: (ms: number) => boolean) => {
    for (const [timer, { callback, ms }] of [...timers]) {
      if (!ofMs(ms)) continue;
      timers.delete(timer);
      callback();
    }
    await settle();
  };
  const finishRegistering = async () => {
    await settle();
    proceed();
    await settle();
  };
  return { slots, registered, changes, held, failing, gateOf, acquire, fire, finishRegistering };
}

test("a limit that is first used while another one is being stored is stored as well", async () => {
  const { registered, acquire, finishRegistering } = setUp();
  acquire("first");
  await settle();
  acquire("second");
  await finishRegistering();
  await finishRegistering();
  expect(registered).toEqual(["first", "second"]);
});

test("a slot that a failed call may have taken is given back when its step is not there any more", async () => {
  const { slots, changes, failing, acquire, fire, finishRegistering } = setUp();
  failing.count = 1;
  let isAcquired = false;
  const release = acquire("machine", () => {
    isAcquired = true;
  });
  await finishRegistering();
  await fire((ms) => ms < 3_000);
  expect(isAcquired).toBe(true);
  const [node] = changes.flatMap(({ asked }) => asked.map((request) => request.node));
  release();
  await settle();
  // The server may execute the first call only now, so the slot is given back once more when that is not possible any longer.
  const before = changes.length;
  await fire((ms) => ms === 3_000);
  expect(changes.slice(before).flatMap(({ released }) => released.map((request) => request.node))).toEqual([node]);
  slots.close();
});

test("a step that is withdrawn after its call has failed gives its slot back at once", async () => {
  const { changes, failing, acquire, fire, finishRegistering } = setUp();
  failing.count = 1;
  const release = acquire("machine");
  await finishRegistering();
  release();
  await fire((ms) => ms < 3_000);
  expect(changes.at(-1)).toMatchObject({ asked: [], released: [{ runId: "r" }] });
});

const moments = { "before its call": 0, "while its call is under way": 1 };
test.each(Object.entries(moments))(
  "a step that is to leave its place %s, which fails, waits on",
  async (_name, ticks) => {
    const { gateOf, changes, failing, fire, finishRegistering } = setUp();
    gateOf("machine").acquire(() => {});
    await finishRegistering();
    failing.count = 1;
    let isAcquired = false;
    const gate = gateOf("machine");
    gate.acquire(() => {
      isAcquired = true;
    });
    // Calls are made in the next microtask.
    const calls = changes.length;
    for (let tick = 0; tick < ticks; tick += 1) await null;
    expect(changes.length - calls).toBe(ticks);
    expect(await gate.leave?.()).toBe(false);
    expect(isAcquired).toBe(false);
    await fire((ms) => ms < 3_000);
    expect(changes.at(-1)).toMatchObject({ asked: [{ runId: "r" }], left: [] });
    expect(isAcquired).toBe(true);
  },
);
