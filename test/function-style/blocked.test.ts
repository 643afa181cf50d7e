/**
 * What happens to the runs of a worker whose event loop was blocked. How the block is detected is tested in
 * test/processes/blocked.test.ts.
 */
import { type RunHandle, workflow } from "pawl";
import { expect, test } from "vitest";
import type { Store } from "../../src/store/contract/store.js";
import { Frames } from "../../src/worker/watchdog/frames.js";
import { LoopWatch } from "../../src/worker/watchdog/loop-watch.js";
import { forEachStore } from "../support/databases.js";
import { logOf } from "../support/run-checks.js";
import { databaseFor, type MortalWorker } from "../support/virtual-worlds.js";
import { errorOf, until } from "../support/waiting.js";

const leaseMs = 3_000;

/** Blocks the worker's event loop in this frame: its watch thread reports the block, and its process dies. */
async function block(store: Store, mortal: MortalWorker, frame: { runId: string; step: string } | null): Promise<void> {
  mortal.freeze();
  const [worker] = (await store.workers()).filter(({ live }) => live);
  if (worker === undefined) throw new Error("No worker is there.");
  const frames = new Frames();
  const { ownedTasks, send, deregisterWorker } = store;
  const loop = new LoopWatch({
    frames,
    openStore: async () => ({
      ownedTasks: (fence) => ownedTasks.call(store, fence),
      send: (mail) => send.call(store, mail),
      deregisterWorker: (fence) => deregisterWorker.call(store, fence),
      close: async () => {},
    }),
    print: () => {},
  });
  const fence = { workerId: worker.id, epoch: worker.epoch };
  loop.watch({ index: 0, name: worker.name, fence, leaseMs, renewedAt: 0 });
  if (frame !== null) frames.enter(0, frame.runId, frame.step);
  for (let now = 100; now <= leaseMs; now += 100) await loop.check(now);
  await mortal.kill();
}

forEachStore((kind) => {
  const database = databaseFor(kind);

  test("the run that blocked the event loop is paused after two workers, and the other runs do not count a crash", async () => {
    let hangs = true;
    let begun = 0;
    const work = workflow(`work ${kind}`, (ctx, name: string) =>
      ctx.step("work", () => {
        begun += 1;
        return hangs ? new Promise<string>(() => {}) : name;
      }),
    );
    const w = await database.world();
    const runs: RunHandle<string, string>[] = [];
    for (const name of ["bad", "good", "better"]) runs.push(await w.pawl.start(work, name));
    const [bad, ...good] = runs as [RunHandle<string, string>, ...RunHandle<string, string>[]];

    for (const name of ["first", "second"]) {
      begun = 0;
      // With this limit a single counted crash pauses a run.
      const worker = await w.worker([work], { name, maxDeliveries: 1 });
      await until(() => begun === runs.length);
      await block(w.store, worker, { runId: bad.id, step: "work" });
    }
    hangs = false;
    const third = await w.worker([work], { name: "third", maxDeliveries: 1 });
    await third.settle();
    expect(await Promise.all(good.map((run) => run.result()))).toEqual(["good", "better"]);
    expect(await bad.status()).toBe("paused");
    expect(await logOf(bad)).toEqual([
      "run.started",
      "run.recovered",
      "run.blocked work",
      "run.recovered",
      "run.blocked work",
      "run.paused work",
    ]);
    const { data } = (await bad.history()).at(-1) ?? {};
    expect((data as { reason: string }).reason).toContain('worker "first" and then of worker "second"');

    // Once the code is fixed and the run is resumed, its crash count starts again at zero.
    await bad.resume();
    await third.settle();
    expect(await bad.result()).toBe("bad");
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
    let atOnce = 0;
    let most = 0;
    let begun = 0;
    const work = workflow(`suspect ${kind}`, (ctx) =>
      ctx.step("work", async () => {
        begun += 1;
        if (hangs) return new Promise<void>(() => {});
        atOnce += 1;
        most = Math.max(most, atOnce);
        await new Promise((resolve) => setTimeout(resolve, 5));
        atOnce -= 1;
      }),
    );
    const w = await database.world();
    const runs = await Promise.all([1, 2, 3].map(() => w.pawl.start(work)));
    const first = await w.worker([work]);
    await until(() => begun === runs.length);
    await block(w.store, first, null);
    hangs = false;
    const second = await w.worker([work]);
    await second.settle();
    await Promise.all(runs.map((run) => run.result()));
    expect(most).toBe(1);
    for (const run of runs) expect(await logOf(run)).toContain("run.blocked");
  });

  test("a suspect that waits for its turn can be canceled", async () => {
    let begun = 0;
    const work = workflow(`cancel ${kind}`, (ctx) =>
      ctx.step("work", () => {
        begun += 1;
        return new Promise<void>(() => {});
      }),
    );
    const w = await database.world();
    const runs = await Promise.all([1, 2].map(() => w.pawl.start(work)));
    const first = await w.worker([work]);
    await until(() => begun === runs.length);
    await block(w.store, first, null);
    begun = 0;
    await w.worker([work]);
    await until(() => begun === 1);
    await Promise.all(runs.map((run) => run.cancel("enough")));
    for (const run of runs) expect(await errorOf(run.result())).toMatchObject({ name: "RunCanceledError" });
  });
});
