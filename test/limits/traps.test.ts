/** What limits of others stumbled over, each with a test named after it, on every store. */
import { limit, workflow } from "pawl";
import { describe, expect, onTestFinished, test } from "vitest";
import { everyStore, forEachStore, testDatabase } from "../support/databases.js";
import { rawSql } from "../support/raw-sql.js";
import { keepWorking, type MortalWorker, type World, world } from "../support/virtual-worlds.js";
import { gate, until, untilInInnodb } from "../support/waiting.js";

/** Bodies that take until the test lets them end. */
class Bodies {
  readonly #open = new Map<string, () => void>();
  /** The names of all bodies that ever began, in order. */
  readonly begun: string[] = [];
  mostAtOnce = 0;

  async run(name: string): Promise<void> {
    const { open, opened } = gate();
    this.#open.set(name, open);
    this.begun.push(name);
    this.mostAtOnce = Math.max(this.mostAtOnce, this.#open.size);
    await opened;
    this.#open.delete(name);
  }

  get running(): readonly string[] {
    return [...this.#open.keys()].sort();
  }

  end(...names: readonly string[]): void {
    for (const name of names.length === 0 ? this.running : names) this.#open.get(name)?.();
  }

  /** Ends every body as soon as it has begun, until the condition holds. */
  async endAllUntil(condition: () => Promise<boolean>): Promise<void> {
    await until(async () => {
      this.end();
      return condition();
    });
  }
}

const inUse = async ({ store }: World, name: string) =>
  (await store.limits.lanes(name, { after: null, limit: 100 })).reduce((sum, { inUse: count }) => sum + count, 0);
const haveEnded = (runs: readonly { status(): Promise<string> }[]) => async () =>
  (await Promise.all(runs.map((run) => run.status()))).every((status) => status === "completed");

forEachStore((kind) => {
  async function newWorld(): Promise<World> {
    const { url, drop } = await testDatabase(kind);
    onTestFinished(drop);
    return world(kind, url);
  }

  /** Each run is one body with the name of the run. */
  async function worldOf(concurrency: number, workerOptions: { readonly concurrency?: number } = {}) {
    const bodies = new Bodies();
    const few = limit("few", { concurrency });
    const wf = workflow("wf", { limits: [few] }, (ctx, name: string) => ctx.step("work", () => bodies.run(name)));
    const w = await newWorld();
    const newWorker = async (): Promise<MortalWorker> => {
      const worker = await w.worker([wf], workerOptions);
      keepWorking(worker);
      return worker;
    };
    /** One after the other, so that their order is certain. */
    const startAll = async (...names: readonly string[]) => {
      const runs = [];
      for (const name of names) {
        w.clock.moveTo(w.clock.read() + 1);
        runs.push(await w.pawl.start(wf, name));
      }
      return runs;
    };
    return { w, bodies, newWorker, startAll };
  }

  test("capacity computed from positions: the free slots follow from the holders, whichever run ends first", async () => {
    const { w, bodies, newWorker, startAll } = await worldOf(2);
    await newWorker();
    const runs = await startAll("first", "second", "third", "fourth", "fifth");
    await until(() => bodies.begun.length === 2);
    expect(bodies.running).toEqual(["first", "second"]);
    // The oldest run keeps its slot, while the others get the second slot one after the other.
    for (const [next, name] of [
      ["third", "second"],
      ["fourth", "third"],
      ["fifth", "fourth"],
    ] as const) {
      bodies.end(name);
      await until(() => bodies.begun.includes(next));
      expect(bodies.running).toEqual([next, "first"].sort());
      expect(await inUse(w, "few")).toBe(2);
    }
    await bodies.endAllUntil(haveEnded(runs));
    expect(bodies.mostAtOnce).toBe(2);
  });

  test("counters that leak when a process dies: after more deaths than slots, all slots can be used", async () => {
    const { w, bodies, newWorker, startAll } = await worldOf(2);
    const runs = await startAll("a", "b", "c");
    for (let death = 1; death <= 4; death += 1) {
      const { kill } = await newWorker();
      await until(() => bodies.begun.length === 2 * death);
      expect(await inUse(w, "few")).toBe(2);
      await kill();
      expect(await inUse(w, "few")).toBe(0);
      // The bodies of a dead process are gone, too.
      bodies.end();
      await until(() => bodies.running.length === 0);
    }
    await newWorker();
    await until(() => bodies.begun.length === 10);
    expect(bodies.running).toHaveLength(2);
    await bodies.endAllUntil(haveEnded(runs));
    expect(await inUse(w, "few")).toBe(0);
    expect((await w.pawl.verify()).differences).toEqual([]);
  });

  test("SKIP LOCKED on a shared budget that overspends: workers that admit runs of many keys at once share one budget", async () => {
    const bodies = new Bodies();
    const budget = limit("budget", { concurrency: 3 });
    const wf = workflow("wf", { limits: [budget], fairBy: "input.key" }, (ctx, _: { key: string }) =>
      ctx.step("work", () => bodies.run(ctx.runId)),
    );
    const w = await newWorld();
    const runs = await w.pawl.startMany(
      wf,
      Array.from({ length: 60 }, (_, n) => ({ key: `key-${n % 20}` })),
    );
    keepWorking(...(await Promise.all([1, 2, 3, 4].map(() => w.worker([wf], { concurrency: 5 })))));
    await bodies.endAllUntil(haveEnded(runs));
    expect(bodies.begun).toHaveLength(60);
    expect(bodies.mostAtOnce).toBe(3);
    expect(await inUse(w, "budget")).toBe(0);
  });

  test("several rules checked one after another: a run that waits for one limit does not hold another", async () => {
    const bodies = new Bodies();
    const [left, right] = ["left", "right"].map((name) => limit(name, { concurrency: 1 }));
    const needs = (name: string, limits: readonly NonNullable<typeof left>[]) =>
      workflow(name, { limits }, (ctx, run: string) => ctx.step("work", () => bodies.run(run)));
    const [l, r] = [left as NonNullable<typeof left>, right as NonNullable<typeof right>];
    const definitions = [
      needs("both", [l, r]),
      needs("turned", [r, l]),
      needs("left", [l]),
      needs("right", [r]),
    ] as const;
    const [both, turned, onlyLeft, onlyRight] = definitions;
    const w = await newWorld();
    keepWorking(await w.worker(definitions), await w.worker(definitions));
    const holder = await w.pawl.start(onlyRight, "holds right");
    await until(() => bodies.running.length === 1);
    const waiting = [await w.pawl.start(both, "both"), await w.pawl.start(turned, "turned")];
    await until(async () => {
      const explanations = await Promise.all(waiting.map((run) => run.explain()));
      return explanations.every(({ because }) => because === "limited");
    });
    const passing = await w.pawl.start(onlyLeft, "passes");
    await until(() => bodies.running.includes("passes"));
    expect(bodies.running).toEqual(["holds right", "passes"]);
    const crossing = await Promise.all(
      Array.from({ length: 12 }, (_, n) => w.pawl.start(n % 2 === 0 ? both : turned, `crossing ${n}`)),
    );
    await bodies.endAllUntil(haveEnded([holder, passing, ...waiting, ...crossing]));
    expect(bodies.begun).toHaveLength(16);
    expect([await inUse(w, "left"), await inUse(w, "right")]).toEqual([0, 0]);
  });

  test("a waiting parent that holds its slot: parents, children and grandchildren share one slot and end", async () => {
    const one = limit("one", { key: "input.tenant", concurrency: 1 });
    const holders: (readonly string[])[] = [];
    const input = { tenant: "a" };
    const w = await newWorld();
    const noteHolders = async () => {
      const lanes = (await w.pawl.limits.get("one"))?.lanes ?? [];
      holders.push(lanes.flatMap((lane) => lane.holders.map(({ runId }) => runId)));
    };
    const grandchild = workflow("grandchild", { limits: [one] }, (ctx, _: typeof input) =>
      ctx.step("look", async () => {
        await noteHolders();
        return ctx.runId;
      }),
    );
    const child = workflow("child", { limits: [one] }, async (ctx, _: typeof input) => [
      ...(await ctx.map(grandchild, [input, input])),
    ]);
    const parent = workflow("parent", { limits: [one] }, async (ctx, _: typeof input) => {
      const [first, second] = await Promise.all([
        ctx.run(child, input, { name: "first" }),
        ctx.run(child, input, { name: "second" }),
      ]);
      return [...first, ...second];
    });
    keepWorking(await w.worker([parent, child, grandchild]), await w.worker([parent, child, grandchild]));
    const run = await w.pawl.start(parent, input);
    const grandchildren = await run.result();
    expect(grandchildren).toHaveLength(4);
    // While a grandchild is executed, it is the only holder.
    expect(holders.map((ids) => ids.length)).toEqual([1, 1, 1, 1]);
    expect(holders.flat().sort()).toEqual([...grandchildren].sort());
  });

  test("a poll loop per queue that starves the others: a new key begins behind long backlogs and many saturated keys", async () => {
    const bodies = new Bodies();
    const perKey = limit("per_key", { key: "input.key", concurrency: 1 });
    const wf = workflow("wf", { limits: [perKey] }, (ctx, { key }: { key: string }) =>
      ctx.step("work", () => bodies.run(key)),
    );
    const saturated = Array.from({ length: 40 }, (_, n) => `saturated-${n}`);
    const w = await newWorld();
    // As many runs of each key as there are keys, and more of the first than a worker reads at a time.
    await w.pawl.startMany(wf, Array(700).fill({ key: "saturated-0" }));
    for (let round = 0; round < 3; round += 1)
      await w.pawl.startMany(
        wf,
        saturated.map((key) => ({ key })),
      );
    keepWorking(await w.worker([wf], { concurrency: 50 }));
    await until(() => bodies.running.length === saturated.length);
    const fresh = await w.pawl.start(wf, { key: "fresh" });
    await until(() => bodies.running.includes("fresh"));
    bodies.end("fresh");
    await until(haveEnded([fresh]));
    expect(bodies.running).toHaveLength(saturated.length);
  });

  test("debounce that drops: whatever moment the run begins at, every call is in it or in the next", async () => {
    const got: (readonly number[])[] = [];
    const bodies = new Bodies();
    const gather = workflow("gather", async (ctx, calls: number[]) => {
      await ctx.step("look", async () => {
        await bodies.run(ctx.runId);
        got.push(calls);
      });
    });
    const w = await newWorld();
    keepWorking(await w.worker([gather]), await w.worker([gather]));
    const debounce = { key: "k", quiet: "1s", max: "2s", keep: "all" } as const;
    const called: number[] = [];
    for (let round = 0; round < 9; round += 1) {
      const calls = [1, 2, 3].map((n) => 10 * round + n);
      called.push(...calls);
      // Some calls come when the run is due and workers are taking it, some while it is executed, and some before.
      if (round % 3 > 0) w.clock.moveTo(w.clock.read() + 2_000);
      if (round % 3 === 2) await until(() => bodies.running.length > 0);
      await Promise.all(calls.map((n) => w.pawl.start(gather, n, { debounce })));
      if (round % 3 === 2) bodies.end();
    }
    await until(() => {
      w.clock.moveTo(w.clock.read() + 1_000);
      bodies.end();
      return got.flat().length >= called.length;
    });
    expect(got.flat().sort((a, b) => a - b)).toEqual(called);
    expect(got.length).toBeGreaterThan(1);
    expect((await w.pawl.verify()).differences).toEqual([]);
  });
}, everyStore);

/** Where a database locks rows, an admission must lock few of those that wait. */
describe("the whole backlog locked to admit one", () => {
  forEachStore(
    (kind) => {
      test("an admission in the middle of its work has locked a few of the waiting runs", async () => {
        const { url, drop } = await testDatabase(kind);
        onTestFinished(drop);
        const w = await world(kind, url);
        const one = limit("one", { concurrency: 1 });
        const wf = workflow("wf", { limits: [one] }, async () => "ran");
        const [first] = await w.pawl.startMany(wf, Array(1).fill(undefined));
        const backlog = 300;
        w.clock.moveTo(w.clock.read() + 1);
        await w.pawl.startMany(wf, Array(backlog).fill(undefined));
        const [blocking, looking] = [await rawSql(url), await rawSql(url)];
        onTestFinished(() => Promise.all([blocking, looking].map((sql) => sql.close())).then(() => {}));
        // The admission has to wait for this row when it wants to take its slot.
        await blocking.query("BEGIN");
        await blocking.query(
          `INSERT INTO pawl_slots (run_id, lane, owner, epoch, at) VALUES ('${first?.id}', 'one\t', 'another', 0, 0)`,
        );
        const { worker } = await w.worker([wf]);
        const settled = worker.runUntilIdle();
        await untilInInnodb(async () => Number((await looking.query(countBlocked[kind] as string))[0]?.n) === 1);
        await looking.query("BEGIN");
        const unlocked = await looking.query("SELECT run_id FROM pawl_tasks WHERE state = 1 FOR UPDATE SKIP LOCKED");
        await looking.query("ROLLBACK");
        expect(unlocked.length).toBeLessThan(backlog + 1);
        expect(unlocked.length).toBeGreaterThan(backlog - 20);
        await blocking.query("ROLLBACK");
        await until(async () => (await first?.status()) === "completed");
        await worker.stop();
        await settled;
      });
    },
    ["postgres", "mysql"],
  );
});

/** How many sessions of the database wait for a lock. */
const countBlocked: Readonly<Record<string, string>> = {
  postgres:
    "SELECT count(*) AS n FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'",
  mysql: `SELECT count(*) AS n FROM information_schema.innodb_trx x JOIN information_schema.processlist p ON p.id = x.trx_mysql_thread_id
    WHERE x.trx_state = 'LOCK WAIT' AND p.db = DATABASE()`,
};
