/** Pruning deletes old trees of runs as a whole and leaves no rows behind. */
import { InvalidInputError, RunNotFoundError, Workflow, workflow } from "pawl";
import { describe, expect, onTestFinished, test } from "vitest";
import { batch, finish, newRun, newRuns, transition, workerInfo } from "../../src/testing/store-suite/builders.js";
import { testDatabase } from "../support/databases.js";
import { forMemoryAnd } from "../support/effort.js";
import { rawSql } from "../support/raw-sql.js";
import { world } from "../support/virtual-worlds.js";
import { errorOf } from "../support/waiting.js";

const day = 86_400_000;
const tables = {
  pawl_runs: "id",
  pawl_events: "run_id",
  pawl_inbox: "run_id",
  pawl_cursors: "run_id",
  pawl_tasks: "run_id",
};

const leaf = workflow("leaf", (ctx, n: number) => ctx.step("one", () => n));
const branch = workflow("branch", (ctx, n: number) => ctx.map(leaf, [n, n + 1]));
const root = workflow("root", (ctx) => ctx.map(branch, [10, 20]));
const echo = workflow("echo", async (_ctx, value: unknown) => value);
const listening = workflow("listening", (ctx) => ctx.waitForSignal("go"));
class Loop extends Workflow {
  static {
    this.resumableStep("loop", (_w, iter) => iter.over([1, 2, 3], () => {}));
  }
}
const all = [leaf, branch, root, echo, listening, Loop];

forMemoryAnd("postgres", (kind) => {
  async function prepared() {
    const database = await testDatabase(kind);
    onTestFinished(() => database.drop());
    const w = await world(kind, database.url);
    const { settle } = await w.worker(all);
    /** How many rows each table has for these runs, read with the test's own SQL. */
    const rows = async (ids: readonly string[]): Promise<number> => {
      if (kind === "memory") {
        const logs = await w.store.logs(ids);
        const cursors = (await Promise.all(ids.map((id) => w.store.cursors(id)))).flat();
        return (await w.store.runsById(ids)).length + [...logs.values()].flat().length + cursors.length;
      }
      const sql = await rawSql(database.url);
      let count = 0;
      for (const [table, key] of Object.entries(tables)) {
        const some = ids.map((id) => `'${id}'`).join(",");
        count += Number((await sql.query(`SELECT count(*) AS n FROM ${table} WHERE ${key} IN (${some})`))[0]?.n);
      }
      await sql.close();
      return count;
    };
    const later = (ms: number) => w.clock.moveTo(w.clock.read() + ms);
    return { ...w, settle, rows, later };
  }

  test("a dry run reports what would be deleted, and deletes nothing", async () => {
    const w = await prepared();
    await w.pawl.start(root);
    await w.pawl.start(echo, 1);
    await w.pawl.start(listening);
    await w.settle();
    const ids = (await w.pawl.runs()).runs.map(({ id }) => id);
    w.later(2 * day);
    const before = await w.rows(ids);
    const planned = await w.pawl.prune({ olderThan: "1 day", dryRun: true });
    expect(planned).toEqual({ runs: 8, trees: 2 });
    expect(await w.pawl.prune({ olderThan: "1 day", workflow: echo, dryRun: true })).toEqual({ runs: 1, trees: 1 });
    expect(await w.rows(ids)).toBe(before);
    expect(await w.pawl.prune({ olderThan: "1 day" })).toEqual(planned);
  });

  test("whole trees that ended long ago are deleted with all their rows, and newer ones stay", async () => {
    const w = await prepared();
    const old = [await w.pawl.start(root), await w.pawl.start(echo, 1), await w.pawl.start(Loop)];
    await w.settle();
    const ids = (await w.pawl.runs()).runs.map(({ id }) => id);
    expect(ids).toHaveLength(1 + 2 + 4 + 2);
    expect(await w.rows(ids)).toBeGreaterThan(9 * 1.5);
    w.later(30 * day);
    const young = await w.pawl.start(root);
    await w.settle();
    expect(await w.pawl.prune({ olderThan: "31 days" })).toEqual({ runs: 0, trees: 0 });
    w.later(day);
    expect(await w.pawl.prune({ olderThan: "30 days" })).toEqual({ runs: 9, trees: 3 });
    expect(await w.rows(ids)).toBe(0);
    expect(await errorOf((old[0] as typeof young).get())).toBeInstanceOf(RunNotFoundError);
    expect(await young.result()).toEqual([
      [10, 11],
      [20, 21],
    ]);
    expect((await w.pawl.runs()).runs).toHaveLength(7);
    expect((await w.pawl.verify()).differences).toEqual([]);
    expect(await w.pawl.prune({ olderThan: "30 days" })).toEqual({ runs: 0, trees: 0 });
  });

  test("a run that is open, or that ended recently, keeps its whole tree", async () => {
    const w = await prepared();
    const waits = await w.pawl.start(listening);
    const parent = workflow("parent", async (ctx) => {
      await ctx.run(leaf, 1);
      return ctx.run(listening, undefined);
    });
    const { settle } = await w.worker([parent]);
    const mother = await w.pawl.start(parent);
    const settleAll = async () => {
      // A run that one worker parks may be resumed by the other.
      for (let round = 0; round < 4; round += 1) {
        await settle();
        await w.settle();
      }
    };
    await settleAll();
    w.later(100 * day);
    expect(await w.pawl.prune({ olderThan: "1 day" })).toEqual({ runs: 0, trees: 0 });
    const child = (await w.pawl.runs({ workflow: listening })).runs.find(({ parentId }) => parentId === mother.id);
    await w.pawl.run(child?.id as string).signal("go", "at last");
    await waits.cancel();
    await settleAll();
    expect(await mother.result()).toBe("at last");
    expect(await w.pawl.prune({ olderThan: "1 day" })).toEqual({ runs: 0, trees: 0 });
    w.later(2 * day);
    expect(await w.pawl.prune({ olderThan: "1 day" })).toEqual({ runs: 4, trees: 2 });
  });

  test("an ended parent is kept while one of its children is open", async () => {
    const w = await prepared();
    const parent = await w.pawl.start(echo, "parent");
    await w.settle();
    // A child is canceled when its parent ends, but stays open until it has processed that message.
    const child = newRun({ workflow: "listening", parentId: parent.id, parentNode: "n", due: { kind: "held" } });
    await w.store.commit(batch(null, [], [child]));
    w.later(100 * day);
    expect(await w.pawl.prune({ olderThan: "1 day" })).toEqual({ runs: 0, trees: 0 });
    expect(await parent.result()).toBe("parent");
    await w.pawl.run(child.id).cancel();
    await w.settle();
    w.later(2 * day);
    expect(await w.pawl.prune({ olderThan: "1 day" })).toEqual({ runs: 2, trees: 1 });
  });

  test("idempotency keys of deleted runs can be used again", async () => {
    const w = await prepared();
    const first = await w.pawl.start(echo, 1, { idempotencyKey: "once" });
    await w.settle();
    w.later(2 * day);
    expect((await w.pawl.start(echo, 1, { idempotencyKey: "once" })).id).toBe(first.id);
    await w.pawl.prune({ olderThan: "1 day" });
    const second = await w.pawl.start(echo, 2, { idempotencyKey: "once" });
    expect(second.id).not.toBe(first.id);
    await w.settle();
    expect(await second.result()).toBe(2);
  });

  test("an interrupted prune leaves no child without its parent, and the next prune deletes the rest", async () => {
    const w = await prepared();
    const runs = [await w.pawl.start(root), await w.pawl.start(root)];
    await w.settle();
    const ids = (await w.pawl.runs()).runs.map(({ id }) => id);
    w.later(2 * day);
    const { deleteRuns } = w.store.maintenance;
    let batches = 0;
    // The process "dies" after deleting some leaves of the first tree.
    w.store.maintenance.deleteRuns = async (batch) => {
      batches += 1;
      await deleteRuns.call(w.store.maintenance, batch.slice(0, 5));
      throw new Error("killed");
    };
    expect((await errorOf(w.pawl.prune({ olderThan: "1 day" }))).message).toBe("killed");
    w.store.maintenance.deleteRuns = deleteRuns;
    expect(batches).toBe(1);
    const left = (await w.pawl.runs()).runs;
    expect(left).toHaveLength(14 - 5);
    const there = new Set(left.map(({ id }) => id));
    for (const { parentId } of left) if (parentId !== null) expect(there).toContain(parentId);
    expect(runs.every(({ id }) => there.has(id))).toBe(true);
    expect((await w.pawl.verify()).differences).toEqual([]);
    expect(await w.pawl.prune({ olderThan: "1 day" })).toEqual({ runs: 9, trees: 2 });
    expect(await w.rows(ids)).toBe(0);
  });

  test("the workflow filter, the limit and the abort signal are respected, with more runs than fit into a batch", async () => {
    const w = await prepared();
    await w.pawl.startMany(
      echo,
      Array.from({ length: 450 }, (_, n) => n),
    );
    await w.pawl.startMany(leaf, [1, 2]);
    await w.settle();
    w.later(2 * day);
    const count = async () => (await w.pawl.runs({ workflow: echo, limit: 1_000 })).runs.length;
    expect(await w.pawl.prune({ olderThan: "1 day", workflow: echo, limit: 10 })).toEqual({ runs: 10, trees: 10 });
    const stop = new AbortController();
    const { deleteRuns } = w.store.maintenance;
    w.store.maintenance.deleteRuns = (batch) => {
      expect(batch.length).toBeLessThanOrEqual(200);
      stop.abort();
      return deleteRuns.call(w.store.maintenance, batch);
    };
    expect(await w.pawl.prune({ olderThan: "1 day", workflow: "echo", signal: stop.signal })).toEqual({
      runs: 200,
      trees: 200,
    });
    w.store.maintenance.deleteRuns = deleteRuns;
    expect(await count()).toBe(240);
    expect(await w.pawl.prune({ olderThan: "1 day", workflow: echo })).toEqual({ runs: 240, trees: 240 });
    expect((await w.pawl.runs()).runs).toHaveLength(2);
  });
});

describe("prune()", () => {
  test("refuses an invalid duration and an invalid limit", async () => {
    const w = await world();
    for (const options of [{}, { olderThan: "soon" }, { olderThan: -1 }, { olderThan: "1 day", limit: 0 }])
      expect(await errorOf((async () => w.pawl.prune(options as never))())).toBeInstanceOf(InvalidInputError);
  });

  test("collects large trees one at a time", async () => {
    const w = await world();
    const fence = await w.store.registerWorker(workerInfo());
    const owned = { due: { kind: "owned" } } as const;
    const roots = newRuns(2, owned);
    const children = roots.flatMap(({ id }) => newRuns(11_000, { ...owned, parentId: id, parentNode: "n" }));
    const runs = [...roots, ...children];
    await w.store.commit(batch(fence, [], runs));
    const ends = runs.map(({ id }) => transition(id, { next: finish() }));
    await w.store.commit(batch(fence, ends));
    w.clock.moveTo(w.clock.read() + 2 * day);
    expect(await w.pawl.prune({ olderThan: "1 day" })).toEqual({ runs: 22_002, trees: 2 });
    expect((await w.pawl.runs()).runs).toEqual([]);
  });
});
