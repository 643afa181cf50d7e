/** `cancel(reason, { force: true })` lets operators end any run immediately, without compensation. */
import { workflow } from "pawl";
import { expect, onTestFinished, test } from "vitest";
import { testDatabase } from "../support/databases.js";
import { forMemoryAnd } from "../support/effort.js";
import { logOf } from "../support/run-checks.js";
import { world } from "../support/virtual-worlds.js";
import { errorOf, gate, until } from "../support/waiting.js";

const undone: string[] = [];
const child = workflow("child", (ctx) => ctx.waitForSignal("never"));
const saga = workflow("saga", async (ctx) => {
  await ctx.step("book", () => "booked", { compensate: () => void undone.push("book") });
  await ctx.run(child);
});

forMemoryAnd("mysql", (kind) => {
  test("a parked run ends immediately without a worker, its children are canceled and nothing is undone", async () => {
    const database = await testDatabase(kind);
    onTestFinished(() => database.drop());
    const w = await world(kind, database.url);
    const worker = await w.worker([saga, child]);
    const run = await w.pawl.start(saga);
    await worker.settle();
    await worker.worker.stop();
    undone.length = 0;
    await run.cancel("enough", { force: true });
    expect(await run.status()).toBe("canceled");
    expect((await errorOf(run.result())).message).toContain("enough");
    expect(await run.history()).toContainEqual(
      expect.objectContaining({ type: "run.cancel_requested", data: { reason: "enough", force: true } }),
    );
    await (await w.worker([saga, child])).settle();
    expect((await w.pawl.runs({ workflow: child })).runs).toMatchObject([{ status: "canceled" }]);
    expect(undone).toEqual([]);
    expect((await w.pawl.verify()).differences).toEqual([]);
    // Repeating the command is a no-op.
    await run.cancel(undefined, { force: true });
  });
});

test("a run whose step never returns ends while its worker executes it, without waiting for the step", async () => {
  const begun = gate();
  const hanging = workflow("hanging", (ctx) =>
    ctx.step("hang", () => {
      begun.open();
      return new Promise(() => {});
    }),
  );
  const w = await world();
  const worker = await w.worker([hanging], { grace: "1 hour" });
  const run = await w.pawl.start(hanging);
  const settled = worker.settle();
  await begun.opened;
  await run.cancel("it hangs");
  await run.cancel("it still hangs", { force: true });
  await settled;
  expect(await run.status()).toBe("canceled");
  expect((await run.get()).error?.message).toBe("it still hangs");
});

test("a run whose compensation keeps failing ends with what it has undone so far", async () => {
  const stuck = workflow("stuck", { retry: { attempts: 1 } }, async (ctx) => {
    await ctx.step("first", () => 1, { compensate: () => void undone.push("first") });
    await ctx.step("second", () => 2, {
      compensate: () => {
        throw new Error("cannot be undone");
      },
    });
    throw new Error("failed");
  });
  const w = await world();
  const worker = await w.worker([stuck]);
  const run = await w.pawl.start(stuck);
  await worker.settle();
  undone.length = 0;
  expect(await run.status()).toBe("paused");
  await run.cancel("by hand", { force: true });
  await worker.settle();
  expect(await run.status()).toBe("canceled");
  expect(undone).toEqual([]);
});

test("a run whose log cannot be read ends", async () => {
  const w = await world();
  const worker = await w.worker([child]);
  const run = await w.pawl.start(child);
  await worker.settle();
  // The log consumes a signal that never arrived, so it contradicts itself.
  await w.store.commit({
    fence: null,
    starts: [],
    transitions: [
      {
        runId: run.id,
        afterSeq: (await logOf(run)).length,
        events: [
          { type: "wait.completed", node: "signal:never", attempt: null, outcome: null, data: '{"signals":[99]}' },
        ],
        next: { kind: "park", status: "waiting", waiting: null, startedAt: null, wakeAt: null, wakeInMs: null },
        drainedInboxIds: [],
        newChildren: [],
        messages: [],
        releasedChildIds: [],
        cursors: [],
      },
    ],
  });
  expect(await errorOf(run.pause())).toMatchObject({ code: "DAMAGED_DATA" });
  await run.cancel("by force", { force: true });
  await until(async () => (await w.store.run(run.id))?.status === "canceled");
});

test("an unknown option is refused", async () => {
  const w = await world();
  const run = await w.pawl.start(child);
  expect(await errorOf(run.cancel("x", { forced: true } as never))).toMatchObject({ code: "INVALID_INPUT" });
});
