/**
 * What happens to the runs of a worker whose event loop was blocked. How the block is detected is tested in
 * test/processes/blocked.test.ts.
 */
import { type RunHandle, workflow } from "pawl";
import { expect, test } from "vitest";
import type { Store } from "../../src/store/contract/store.js";
import { Frames } from "../../src/worker/watchdog/frames.js";
import { LoopWatch } from "../../src/worker/watchdog/loop-watch.js";
import { forMemoryAnd } from "../support/effort.js";
import { logOf } from "../support/run-checks.js";
import { databaseFor, type MortalWorker } from "../support/virtual-worlds.js";
import { errorOf, until } from "../support/waiting.js";

const leaseMs = 3_000;

/** Blocks the worker's event loop in this frame: its watch thread reports the block, and its process dies. */
async function block(
  store: Store,
  mortalWorker: MortalWorker,
  frame: { runId: string; step: string } | null,
): Promise<void> {
  mortalWorker.freeze();
  const [worker] = (await store.workers()).filter(({ live }) => live);
  if (worker === undefined) throw new Error("No worker is there.");
  const frames = new Frames();
  const { ownedTasks, send, deregisterWorker } = store;
  const loop = new LoopWatch({
    frames,
    openStore: async () => ({
      ownedTasks: (fence) => ownedTasks.call(store, fence),
      send: (message) => send.call(store, message),
      deregisterWorker: (fence) => deregisterWorker.call(store, fence),
      close: async () => {},
    }),
    print: () => {},
  });
  const fence = { workerId: worker.id, epoch: worker.epoch };
  loop.watch({ index: 0, name: worker.name, fence, leaseMs, renewedAt: 0 });
  if (frame !== null) frames.enter(0, frame.runId, frame.step);
  for (let now = 100; now <= leaseMs; now += 100) await loop.check(now);
  await mortalWorker.kill();
}

forMemoryAnd("sqlite", (kind) => {
  const database = databaseFor(kind);

  test("the run that blocked the event loop is paused after two workers, and the other runs do not count a crash", async () => {
    let hangs = true;
    let startedCount = 0;
    const work = workflow(`work ${kind}`, (ctx, name: string) =>
      ctx.step("work", () => {
        startedCount += 1;
        return hangs ? new Promise<string>(() => {}) : name;
      }),
    );
    const w = await database.world();
    const runs: RunHandle<string, string>[] = [];
    for (const name of ["bad", "good", "better"]) runs.push(await w.pawl.start(work, name));
    const [blocking, ...others] = runs as [RunHandle<string, string>, ...RunHandle<string, string>[]];

    for (const name of ["first", "second"]) {
      startedCount = 0;
      // With this limit a single counted crash pauses a run.
      const worker = await w.worker([work], { name, maxDeliveries: 1 });
      await until(() => startedCount === runs.length);
      await block(w.store, worker, { runId: blocking.id, step: "work" });
    }
    hangs = false;
    const third = await w.worker([work], { name: "third", maxDeliveries: 1 });
    await third.settle();
    expect(await Promise.all(others.map((run) => run.result()))).toEqual(["good", "better"]);
    expect(await blocking.status()).toBe("paused");
    expect(await logOf(blocking)).toEqual([
      "run.started",
      "run.recovered",
      "run.blocked work",
      "run.recovered",
      "run.blocked work",
      "run.paused work",
    ]);
    const { data } = (await blocking.history()).at(-1) ?? {};
    expect((data as { reason: string }).reason).toContain('worker "first" and then of worker "second"');

    // Once the code is fixed and the run is resumed, its crash count starts again at zero.
    await blocking.resume();
    await third.settle();
    expect(await blocking.result()).toBe("bad");
    expect((await w.pawl.verify()).differences).toEqual([]);
  });

  test("a worker that crashes without blocking its event loop still counts as a crash of its runs", async () => {
    const work = workflow(`crash ${kind}`, (ctx) => ctx.step("work", () => new Promise<void>(() => {})));
    const w = await database.world();
    const run = await w.pawl.start(work);
    const first = await w.worker([work], { maxDeliveries: 1 });
    await until(async () => (await run.status()) === "running");
    await first.kill();
    const second = await w.worker([work], { maxDeliveries: 1 });
    await second.settle();
    expect(await run.status()).toBe("paused");
    expect(await logOf(run)).not.toContain("run.blocked");
  });

  test("when it is unknown which run blocked the event loop, the next worker executes the suspects one at a time", async () => {
    let hangs = true;
    let active = 0;
    let maxActive = 0;
    let startedCount = 0;
    const work = workflow(`suspect ${kind}`, (ctx) =>
      ctx.step("work", async () => {
        startedCount += 1;
        if (hangs) return new Promise<void>(() => {});
        active += 1;
        maxActive = Math.max(maxActive, active);
        await new Promise((resolve) => setTimeout(resolve, 5));
        active -= 1;
      }),
    );
    const w = await database.world();
    const runs = await Promise.all([1, 2, 3].map(() => w.pawl.start(work)));
    const first = await w.worker([work]);
    await until(() => startedCount === runs.length);
    await block(w.store, first, null);
    hangs = false;
    const second = await w.worker([work]);
    await second.settle();
    await Promise.all(runs.map((run) => run.result()));
    expect(maxActive).toBe(1);
    for (const run of runs) expect(await logOf(run)).toContain("run.blocked");
  });

  test("a suspect that waits for its turn can be canceled", async () => {
    let startedCount = 0;
    const work = workflow(`cancel ${kind}`, (ctx) =>
      ctx.step("work", () => {
        startedCount += 1;
        return new Promise<void>(() => {});
      }),
    );
    const w = await database.world();
    const runs = await Promise.all([1, 2].map(() => w.pawl.start(work)));
    const first = await w.worker([work]);
    await until(() => startedCount === runs.length);
    await block(w.store, first, null);
    startedCount = 0;
    await w.worker([work]);
    await until(() => startedCount === 1);
    await Promise.all(runs.map((run) => run.cancel("enough")));
    for (const run of runs) expect(await errorOf(run.result())).toMatchObject({ name: "RunCanceledError" });
  });
});
