/** An unreadable row affects only its own run, which is paused or reported. The worker keeps running. */

import { workflow } from "pawl";
import { expect, test, vi } from "vitest";
import type { StoredEvent } from "../../src/store/contract/store.js";
import { logOf } from "../support/run-checks.js";
import { silent, world } from "../support/virtual-worlds.js";
import { until } from "../support/waiting.js";

const sleeper = workflow("sleeper", async (ctx, _value: unknown) => {
  const value = await ctx.step("make", () => "made");
  await ctx.sleep("nap", "1h");
  return value;
});
const waiter = workflow("waiter", (ctx) => ctx.waitForSignal("go"));
const fine = workflow("fine", async () => "fine");
const all = [sleeper, waiter, fine];

async function parked() {
  const w = await world();
  const worker = await w.worker(all);
  const run = await w.pawl.start(sleeper, 1);
  const due = (await worker.settle()) as number;
  const tamper = (change: (event: StoredEvent) => StoredEvent) => {
    const logs = w.store.logs.bind(w.store);
    return vi.spyOn(w.store, "logs").mockImplementation(async (ids) => {
      const read = await logs(ids);
      return new Map([...read].map(([id, log]) => [id, id === run.id ? log.map(change) : log]));
    });
  };
  const expectLiving = async () => {
    const other = await w.pawl.start(fine);
    await worker.settle();
    expect(await other.result({ timeout: "100s" })).toBe("fine");
  };
  return { w, worker, run, due, tamper, expectLiving };
}

test.each(["step.completed", "timer.started", "run.started"])(
  "a %s event with damaged data pauses its run, and the run completes after the event is repaired and the run is resumed",
  async (type) => {
    const { w, worker, run, due, tamper, expectLiving } = await parked();
    const damaged = tamper((event) => (event.type === type ? { ...event, data: "{not json" } : event));
    w.clock.moveTo(due);
    await worker.settle();
    expect(await run.status()).toBe("paused");
    await expectLiving();
    damaged.mockRestore();
    await run.resume();
    await worker.settle();
    expect(await run.result({ timeout: "100s" })).toBe("made");
  },
);

test("an event of an unknown type, written by a newer version, is ignored", async () => {
  const { w, worker, run, due, expectLiving } = await parked();
  const none: readonly never[] = [];
  const future = { type: "future.thing", node: "x", attempt: null, outcome: "whatever", data: '{"a":1}' };
  const log = await w.store.logs([run.id]);
  const next = {
    kind: "park",
    status: "waiting",
    waiting: (await w.store.run(run.id))?.waiting ?? null,
    startedAt: null,
    wakeAt: due,
    wakeInMs: null,
  } as const;
  const result = await w.store.commit({
    fence: null,
    starts: none,
    transitions: [
      {
        runId: run.id,
        afterSeq: log.get(run.id)?.length ?? 0,
        events: [future],
        next,
        drainedInboxIds: none,
        newChildren: none,
        messages: none,
        releasedChildIds: none,
        cursors: none,
      },
    ],
  });
  expect(result.kind).toBe("committed");
  w.clock.moveTo(due);
  await worker.settle();
  expect(await run.result({ timeout: "100s" })).toBe("made");
  expect(await logOf(run)).toContain("future.thing x");
  expect(await run.executions()).toHaveLength(1);
  await expectLiving();
});

test("a log with a gap pauses its run", async () => {
  const { w, worker, run, due, expectLiving } = await parked();
  const logs = w.store.logs.bind(w.store);
  vi.spyOn(w.store, "logs").mockImplementation(
    async (ids) =>
      new Map(
        [...(await logs(ids))].map(([id, log]) => [id, id === run.id ? log.filter(({ seq }) => seq !== 2) : log]),
      ),
  );
  w.clock.moveTo(due);
  await worker.settle();
  expect(await run.status()).toBe("paused");
  await expectLiving();
});

test("an input that cannot be read fails or pauses its run, with and without onFailure", async () => {
  const told = workflow("told", { onFailure: () => {} }, async (_ctx, value: unknown) => value);
  const w = await world();
  const damage = async <T extends { readonly run: { readonly id: string } }>(tasks: readonly T[]): Promise<T[]> =>
    tasks.map((task) => ({ ...task, run: { ...task.run, input: "{not json" } }));
  const claim = w.store.claim.bind(w.store);
  vi.spyOn(w.store, "claim").mockImplementation(async (request) => {
    const claimed = await claim(request);
    return claimed.kind === "claimed" ? { ...claimed, tasks: await damage(claimed.tasks) } : claimed;
  });
  const runs = [await w.pawl.start(fine), await w.pawl.start(told, 1)];
  const worker = await w.worker([fine, told]);
  await worker.settle();
  for (const run of runs) expect(["failed", "paused"]).toContain(await run.status());
});

test("a damaged `waiting` column does not stop the worker", async () => {
  const { w, worker, run, due, expectLiving } = await parked();
  const claim = w.store.claim.bind(w.store);
  vi.spyOn(w.store, "claim").mockImplementation(async (request) => {
    const claimed = await claim(request);
    if (claimed.kind !== "claimed") return claimed;
    return {
      ...claimed,
      tasks: claimed.tasks.map((task) => ({
        ...task,
        run: { ...task.run, waiting: task.run.id === run.id ? "{not json" : task.run.waiting },
      })),
    };
  });
  w.clock.moveTo(due);
  await worker.settle();
  expect(["completed", "paused"]).toContain(await run.status());
  await expectLiving();
});

test("a message that cannot be read is not read again and again, and the worker executes other runs", async () => {
  const errors: unknown[] = [];
  const w = await world("memory", "memory:", { ...silent, error: (...args) => void errors.push(args) });
  const worker = await w.worker(all);
  const run = await w.pawl.start(waiter);
  await worker.settle();
  const inbox = vi.spyOn(w.store, "inbox");
  await w.store.send([{ to: run.id, kind: "signal", data: "{not json" }]);
  await until(() => inbox.mock.calls.length > 0 || errors.length > 0);
  const other = await w.pawl.start(fine);
  expect(await other.result({ timeout: "100s" })).toBe("fine");
  await new Promise((resolve) => setTimeout(resolve, 200));
  expect(inbox.mock.calls.length).toBeLessThan(20);
});

test("a message of an unknown kind, sent by a newer version, is ignored", async () => {
  const w = await world();
  const worker = await w.worker(all);
  const run = await w.pawl.start(waiter);
  await worker.settle();
  await w.store.send([{ to: run.id, kind: "future", data: "{}" }]);
  await worker.settle();
  expect(await run.status()).toBe("waiting");
  await run.signal("go", 1);
  await worker.settle();
  expect(await run.result({ timeout: "100s" })).toBe(1);
});
