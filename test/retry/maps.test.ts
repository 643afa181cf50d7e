/** A retry takes over the completed children of a map; only the others run again, each once. */
import { PermanentError, workflow } from "pawl";
import { beforeEach, expect, onTestFinished, test } from "vitest";
import type { Store } from "../../src/store/contract/store.js";
import { testDatabase } from "../support/databases.js";
import { forMemoryAnd } from "../support/effort.js";
import { world } from "../support/virtual-worlds.js";

const count = 1_200;
const items = Array.from({ length: count }, (_, index) => index);
let executed: number[] = [];
let running = 0;
let maxRunning = 0;
let refused = (_n: number): boolean => false;
beforeEach(() => {
  executed = [];
  running = 0;
  maxRunning = 0;
});
const square = workflow("square", (ctx, n: number) =>
  ctx.step("square", async () => {
    executed.push(n);
    running += 1;
    maxRunning = Math.max(maxRunning, running);
    await new Promise(setImmediate);
    running -= 1;
    if (refused(n)) throw new PermanentError(`not ${n}`);
    return n * n;
  }),
);
const all = workflow("all", async (ctx) => [...(await ctx.map(square, items, { concurrency: 50, tolerate: 30 }))]);

forMemoryAnd("postgres", (kind) => {
  async function worldOnStore() {
    const database = await testDatabase(kind);
    onTestFinished(() => database.drop());
    const w = await world(kind, database.url);
    const { settle } = await w.worker([square, all]);
    return { ...w, settle };
  }

  test("a map of 1,200 items, some of which fail: the retry runs those once each, and the results are in order", async () => {
    const w = await worldOnStore();
    // The last items fail, and some others: the map fails at the 31st failure.
    refused = (n) => n >= 1_160 || n % 400 === 7;
    const run = await w.pawl.start(all);
    await w.settle();
    expect(await run.status()).toBe("failed");
    const before = await completedIndices(w.store);
    executed = [];
    maxRunning = 0;
    refused = () => false;
    const calls = countReads(w.store);
    const retried = await run.retry();
    await w.settle();
    expect(await retried.result()).toEqual(items.map((n) => n * n));
    expect(executed.toSorted((a, b) => a - b)).toEqual(items.filter((n) => !before.has(n)));
    expect(maxRunning).toBeLessThanOrEqual(50);
    // Each page of children is read once to find the existing ones, and once for the results.
    expect(calls.pages).toBeLessThanOrEqual(2 * Math.ceil(count / 500));
    expect((await w.pawl.runs({ workflow: square, limit: 1_000, parentId: retried.id })).runs).toHaveLength(
      executed.length,
    );
    expect((await w.pawl.verify()).differences).toEqual([]);
  }, 300_000);

  /** Returns the indices of the children that have completed. */
  async function completedIndices(store: Store): Promise<Set<number>> {
    const done = new Set<number>();
    for (let after: { createdAt: number; id: string } | undefined; ; ) {
      const page = await store.runs({ workflow: "square", limit: 500, ...(after === undefined ? {} : { after }) });
      for (const run of page) if (run.status === "completed") done.add(run.parentIndex as number);
      after = page.at(-1);
      if (after === undefined) return done;
    }
  }

  test("results from three runs are combined in the last one, and a later failure keeps the whole map", async () => {
    const w = await worldOnStore();
    let broken = true;
    const few = workflow("few", async (ctx) => {
      const squares = await ctx.map(square, [0, 1, 2, 3, 4, 5]);
      await ctx.step("flaky", () => {
        if (broken) throw new PermanentError("no");
      });
      return [...squares];
    });
    const { settle } = await w.worker([few, square]);
    const settleAll = async () => {
      for (let round = 0; round < 4; round += 1) {
        await settle();
        await w.settle();
      }
    };
    refused = (n) => n % 2 === 1;
    const first = await w.pawl.start(few);
    await settleAll();
    refused = (n) => n === 5;
    const second = await first.retry();
    await settleAll();
    expect(await second.status()).toBe("failed");
    refused = () => false;
    const third = await second.retry();
    await settleAll();
    expect(await third.status()).toBe("failed");
    expect(executed.filter((n) => n === 5).length).toBeGreaterThanOrEqual(2);
    broken = false;
    executed = [];
    const fourth = await third.retry();
    await settleAll();
    expect(await fourth.result()).toEqual([0, 1, 4, 9, 16, 25]);
    expect(executed).toEqual([]);
    expect((await w.pawl.runs({ parentId: fourth.id })).runs).toEqual([]);
  });

  test("a map over other items has other children, and the unchanged ones are kept", async () => {
    const w = await worldOnStore();
    let list = [1, 2, 3];
    const listed = workflow("listed", async (ctx) => {
      const numbers = await ctx.step("list", () => list, { compensate: () => {} });
      const squares = [...(await ctx.map(square, numbers))];
      return squares;
    });
    const { settle } = await w.worker([listed, square]);
    const settleAll = async () => {
      for (let round = 0; round < 4; round += 1) {
        await settle();
        await w.settle();
      }
    };
    refused = (n) => n === 3;
    const run = await w.pawl.start(listed);
    await settleAll();
    expect(await run.status()).toBe("failed");
    refused = () => false;
    list = [1, 7, 3, 4];
    executed = [];
    const retried = await run.retry();
    await settleAll();
    expect(await retried.result()).toEqual([1, 49, 9, 16]);
    expect(executed.toSorted((a, b) => a - b)).toEqual([3, 4, 7]);
  });
});

/** Counts the reads of many runs by id; claims and callers that wait for results read only a few. */
function countReads(store: Store): { pages: number } {
  const calls = { pages: 0 };
  const read = store.runsById.bind(store);
  store.runsById = (ids) => {
    if (ids.length > 100) calls.pages += 1;
    return read(ids);
  };
  return calls;
}
