/** What a retry takes over from the failed run, what it runs again, and what it leaves behind. */
import { job, PermanentError, Workflow, workflow } from "pawl";
import { beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { batch, finish, transition } from "../../src/testing/store-suite/builders.js";
import { forEachStore, testDatabase } from "../support/databases.js";
import { forMemoryAnd } from "../support/effort.js";
import { logOf } from "../support/run-checks.js";
import { mysqlTable, postgresTable, sqliteTable } from "../support/user-table.js";
import { type Workflows, world } from "../support/virtual-worlds.js";
import { errorOf, gate } from "../support/waiting.js";
import { Provider } from "./payment-provider.js";

let executed: string[] = [];
let broken = true;
beforeEach(() => {
  executed = [];
  broken = true;
});
const record = <T>(name: string, value: T): T => {
  executed.push(name);
  return value;
};
/** Fails for good while `broken` is set. */
const flaky = () => {
  if (broken) throw new PermanentError("no");
  return record("flaky", "well");
};

async function memoryWorld(...workflows: Workflows) {
  const w = await world();
  const { settle } = await w.worker(workflows);
  const runToEnd = async () => {
    for (let due = await settle(); due !== null; due = await settle()) w.clock.moveTo(due);
  };
  return { ...w, settle, runToEnd };
}

forMemoryAnd("mysql", (kind) => {
  async function worldOnStore(...workflows: Workflows) {
    const database = await testDatabase(kind);
    onTestFinished(() => database.drop());
    const w = await world(kind, database.url);
    const { settle } = await w.worker(workflows);
    return { ...w, settle, url: database.url };
  }

  test("two simultaneous retries create one run, even of a run with a hero", async () => {
    // The new run cannot complete before all three retries are answered: a retry of a run whose retry is completed is refused.
    let allRetried = gate();
    const once = workflow("once", (ctx) =>
      ctx.step("flaky", async () => {
        const output = flaky();
        await allRetried.opened;
        return output;
      }),
    );
    const w = await worldOnStore(once);
    for (const options of [{}, { hero: { type: "User", id: "1" } }]) {
      allRetried = gate();
      broken = true;
      const run = await w.pawl.start(once, undefined, options);
      await w.settle();
      broken = false;
      const handles = await Promise.all([run.retry(), w.pawl.run(run.id).retry(), run.retry()]);
      allRetried.open();
      expect(new Set(handles.map(({ id }) => id)).size).toBe(1);
      await w.settle();
      expect(await handles[0]?.result()).toBe("well");
    }
    expect(executed).toEqual(["flaky", "flaky"]);
  });

  test("a retry is refused while its hero has another open run, and the error names that run", async () => {
    const once = workflow("once", async (ctx) => {
      await ctx.step("flaky", flaky);
      await ctx.waitForSignal("go");
    });
    const w = await worldOnStore(once);
    const hero = { type: "User", id: "1" };
    const run = await w.pawl.start(once, undefined, { hero, idempotencyKey: "cart-1" });
    await w.settle();
    broken = false;
    const other = await w.pawl.start(once, undefined, { hero });
    await w.settle();
    expect(await errorOf(run.retry())).toMatchObject({ code: "ALREADY_ACTIVE", runId: other.id });
    await other.cancel();
    await w.settle();
    const retried = await run.retry();
    await w.settle();
    expect(await retried.status()).toBe("waiting");
    // The idempotency key of the start stays with the first run.
    expect((await w.pawl.start(once, undefined, { idempotencyKey: "cart-1" })).id).toBe(run.id);
    expect((await retried.get()).idempotencyKey).toBeNull();
  });

  test("signals that were not consumed are taken over in their order, and consumed signals are not delivered twice", async () => {
    const listens = workflow("listens", async (ctx) => {
      const first = await ctx.waitForSignal("a");
      const lost = await ctx.race({ never: ctx.waitForSignal("b"), soon: ctx.sleep("soon", 0) });
      await ctx.step("flaky", flaky);
      return [
        first,
        lost.name,
        await ctx.waitForSignal("a"),
        await ctx.waitForSignal("b"),
        await ctx.waitForSignal("c"),
      ];
    });
    const w = await worldOnStore();
    const run = await w.pawl.start(listens);
    await run.signal("c", "c1", { key: "k" });
    await run.signal("a", "a1");
    await run.signal("a", "a2");
    const { settle } = await w.worker([listens]);
    for (let due = await settle(); due !== null; due = await settle()) w.clock.moveTo(due);
    expect(await run.status()).toBe("failed");
    expect(await errorOf(run.signal("b", "too late"))).toMatchObject({ code: "INVALID_STATE" });
    broken = false;
    const retried = await run.retry();
    await settle();
    await retried.signal("c", "again", { key: "k" });
    await retried.signal("b", "b1");
    await settle();
    expect(await retried.result()).toEqual(["a1", "soon", "a2", "b1", "c1"]);
    expect((await w.pawl.verify()).differences).toEqual([]);
  });

  test("a failed child continues where it failed, and so do its own children", async () => {
    const bank = new Provider();
    const leaf = workflow("leaf", { retry: { attempts: 1 } }, async (ctx, n: number) => {
      await ctx.step("before", () => record(`before ${n}`, n));
      if (n === 2) await ctx.step("charge", ({ idempotencyKey }) => bank.charge(idempotencyKey));
      return n * 10;
    });
    const middle = workflow("middle", async (ctx, n: number) => {
      await ctx.step("open", () => record("open", n));
      return [...(await ctx.map(leaf, [1, n, 3], { concurrency: 1 }))];
    });
    const top = workflow("top", async (ctx) => {
      await ctx.step("begin", () => record("begin", 0));
      return ctx.run(middle, 2);
    });
    const w = await worldOnStore(leaf, middle, top);
    bank.lostResponses = 2;
    let run = await w.pawl.start(top);
    await w.settle();
    for (let count = 0; count < 2; count += 1) {
      expect(await run.status()).toBe("failed");
      run = await run.retry();
      for (let due = await w.settle(); due !== null; due = await w.settle()) w.clock.moveTo(due);
    }
    expect(await run.result()).toEqual([10, 20, 30]);
    expect(bank.charges.size).toBe(1);
    expect(executed).toEqual(["begin", "open", "before 1", "before 2", "before 3"]);
    expect((await w.pawl.verify()).differences).toEqual([]);
  });

  test("a child that was canceled with its parent is awaited until it has ended, and its compensated steps run again", async () => {
    const bank = new Provider();
    const slow = workflow("slow", async (ctx) => {
      const payment = await ctx.step("charge", ({ idempotencyKey }) => bank.charge(idempotencyKey), {
        compensate: async ({ idempotencyKey }, id) => {
          if (broken) throw new Error("the bank is busy");
          bank.refund(idempotencyKey, id as string);
        },
        retry: { attempts: 2, initial: "1 hour" },
      });
      if (broken) await ctx.waitForSignal("never");
      return payment;
    });
    const top = workflow("top", async (ctx) => {
      const child = await ctx.start(slow, undefined);
      await ctx.sleep("until it has charged", "1 minute");
      await ctx.step("flaky", flaky);
      return child.result();
    });
    const w = await worldOnStore(slow, top);
    const run = await w.pawl.start(top);
    w.clock.moveTo((await w.settle()) as number);
    await w.settle();
    expect(await run.status()).toBe("failed");
    // The compensation of the child fails for now.
    const retried = await run.retry();
    await w.settle();
    expect([bank.charges.size, bank.standing.length]).toEqual([1, 1]);
    expect(await retried.status()).toBe("failed");
    broken = false;
    const third = await retried.retry();
    for (let due = await w.settle(); due !== null; due = await w.settle()) w.clock.moveTo(due);
    expect(await third.result()).toBe("payment-2");
    expect(bank.standing).toEqual(["payment-2"]);
    expect((await w.pawl.verify()).differences).toEqual([]);
  });
});

forEachStore(
  (kind) => {
    test("a completed transactional step does not run again, and a failed one keeps its idempotency key", async () => {
      const database = await testDatabase(kind);
      onTestFinished(() => database.drop());
      const table = { sqlite: sqliteTable, postgres: postgresTable, mysql: mysqlTable }[kind](() => database.url);
      await table.create();
      const writes = workflow("writes", async (ctx) => {
        await ctx.transaction("first", (tx, { idempotencyKey }) => table.write(tx, idempotencyKey));
        await ctx.transaction("second", async (tx, { idempotencyKey }) => {
          await table.write(tx, idempotencyKey);
          if (broken) throw new PermanentError("no");
        });
      });
      const w = await world(kind, database.url);
      const { settle } = await w.worker([writes]);
      const run = await w.pawl.start(writes);
      await settle();
      expect(await run.status()).toBe("failed");
      broken = false;
      const retried = await run.retry();
      await settle();
      expect(await retried.status()).toBe("completed");
      expect(await table.committedValues()).toEqual([`${run.id}:first`, `${run.id}:second`]);
    });
  },
  ["sqlite", "postgres", "mysql"],
);

describe("a retry", () => {
  test("draws the same random numbers, does not repeat pauses that were resumed, and keeps patches and branches", async () => {
    const wf = workflow("wf", async (ctx) => {
      const id = ctx.uuid();
      await ctx.step("note", () => record(`note ${id}`, id));
      const isNew = ctx.patched("new way");
      ctx.pause("look at it");
      const way = await ctx.branch("way", () => record("choose", "left" as const), { left: () => "went left" });
      await ctx.step("flaky", flaky);
      return { id, second: ctx.uuid(), isNew, way };
    });
    const w = await memoryWorld(wf);
    const run = await w.pawl.start(wf);
    await w.settle();
    await run.resume();
    await w.settle();
    const noted = executed[0]?.slice(5);
    broken = false;
    const retried = await run.retry();
    await w.settle();
    expect(await retried.result()).toMatchObject({ id: noted, isNew: true, way: "went left" });
    expect(executed).toEqual([`note ${noted}`, "choose", "flaky"]);
  });

  test("calls onFailure for its own failure", async () => {
    const reportedRuns: string[] = [];
    const wf = workflow("wf", { onFailure: ({ runId }) => void reportedRuns.push(runId) }, (ctx) =>
      ctx.step("flaky", flaky),
    );
    const w = await memoryWorld(wf);
    const run = await w.pawl.start(wf);
    await w.settle();
    const retried = await run.retry();
    await w.settle();
    expect(reportedRuns).toEqual([run.id, retried.id]);
  });

  test("takes over the last pass of a handler that was rewound, not the discarded steps", async () => {
    let round = 0;
    const wf = workflow("wf", async (ctx) => {
      const number = await ctx.step("count", () => record("count", (round += 1)));
      const word = await ctx.waitForSignal<string>("word");
      if (number < 2) ctx.reattempt({ rewind: true });
      await ctx.step("flaky", flaky);
      return [number, word, await ctx.waitForSignal("word", { timeout: "1 hour" })];
    });
    const w = await memoryWorld(wf);
    const run = await w.pawl.start(wf);
    await w.settle();
    await run.signal("word", "forgotten");
    await w.settle();
    await run.signal("word", "last");
    await w.settle();
    broken = false;
    const retried = await run.retry();
    await w.runToEnd();
    expect(await retried.result()).toEqual([2, "last", null]);
    expect(executed).toEqual(["count", "count", "flaky"]);
  });

  test("restarts open sleeps, and does not repeat those that have ended", async () => {
    const wf = workflow("wf", async (ctx) => {
      await ctx.sleep("first", "2 hours");
      const second = ctx.sleep("second", "1 hour");
      await ctx.step("flaky", flaky);
      await second;
    });
    const w = await memoryWorld(wf);
    const run = await w.pawl.start(wf);
    w.clock.moveTo((await w.settle()) as number);
    await w.settle();
    expect(await run.status()).toBe("failed");
    w.clock.moveTo(w.clock.read() + 600_000);
    broken = false;
    const at = w.clock.read();
    const retried = await run.retry();
    expect(await w.settle()).toBe(at + 3_600_000);
    await w.runToEnd();
    expect(await retried.status()).toBe("completed");
  });

  test("of a class that was moved to a later step does not run the steps before it", async () => {
    class Sent extends Workflow {
      static {
        this.step("a", () => record("a", 0));
        this.step("b", { wait: "1 day" }, () => record("b", 0));
        this.step("c", () => record("c", 0));
        this.step("d", { onException: "fail" }, flaky);
      }
    }
    const w = await memoryWorld(Sent);
    const run = await w.pawl.start(Sent);
    await w.settle();
    await run.pause();
    await run.resumeAt("c");
    await w.settle();
    expect(await run.status()).toBe("failed");
    broken = false;
    const retried = await run.retry();
    await w.runToEnd();
    expect(await retried.status()).toBe("completed");
    expect(executed).toEqual(["a", "c", "flaky"]);
  });

  test("of a resumable step continues at its cursor, and keeps the recorded calls of the item in flight", async () => {
    class Bill extends Workflow {
      static {
        this.resumableStep("bill", { onException: "fail" }, (w, iter) =>
          iter.over(["ada", "grace", "joan"], async (name) => {
            await w.step("charge", () => record(`charge ${name}`, 0));
            if (name === "grace") await w.step("mail", flaky);
          }),
        );
      }
    }
    const w = await memoryWorld(Bill);
    const run = await w.pawl.start(Bill);
    await w.settle();
    expect(await run.status()).toBe("failed");
    broken = false;
    const retried = await run.retry();
    await w.runToEnd();
    expect(await retried.status()).toBe("completed");
    expect(executed).toEqual(["charge ada", "charge grace", "flaky", "charge joan"]);
  });

  test.each(["aliases", "resume({ renamed })"])(
    "of a resumable step that was renamed continues at its cursor, with its original idempotency keys: by %s",
    async (how) => {
      const keys: string[] = [];
      const bill = (name: string, aliases?: Record<string, string[]>) =>
        class Bill extends Workflow {
          static {
            this.options({ name: "Bill", onException: "fail", ...(aliases === undefined ? {} : { aliases }) });
            this.resumableStep(name, (w, iter) => {
              keys.push(w.idempotencyKey);
              return iter.over(["ada", "grace", "joan"], (one) => (one === "joan" ? flaky() : record(one, 0)));
            });
          }
        };
      const w = await world();
      const Before = bill("bill");
      const before = await w.worker([Before]);
      const run = await w.pawl.start(Before);
      await before.settle();
      expect(await run.status()).toBe("failed");
      await before.worker.stop();
      broken = false;
      const retried = await run.retry();
      if (how === "aliases") {
        await (await w.worker([bill("charge", { charge: ["bill"] })])).settle();
      } else {
        await retried.pause();
        await retried.resume({ renamed: { bill: "charge" } });
        await (await w.worker([bill("charge")])).settle();
      }
      expect(await retried.status()).toBe("completed");
      expect(executed).toEqual(["ada", "grace", "flaky"]);
      expect(keys).toEqual([`${run.id}:bill`, `${run.id}:bill`]);
      expect((await retried.executions()).map(({ step }) => step)).toEqual(["bill"]);
    },
  );

  test("continues with the step in which the previous retry was canceled, at its cursor", async () => {
    let cancels = true;
    class Bill extends Workflow {
      static {
        this.resumableStep("bill", { onException: "fail" }, (w, iter) =>
          iter.over(["ada", "grace", "joan", "mary"], (name) => {
            if (name === "grace") flaky();
            if (name === "joan" && cancels) w.cancel("not now");
            record(name, 0);
          }),
        );
        this.step("after", () => record("after", 0));
      }
    }
    const w = await memoryWorld(Bill);
    const run = await w.pawl.start(Bill);
    await w.settle();
    broken = false;
    const canceled = await run.retry();
    await w.runToEnd();
    expect(await canceled.status()).toBe("canceled");
    cancels = false;
    const retried = await run.retry();
    expect(retried.id).not.toBe(canceled.id);
    await w.runToEnd();
    expect(await retried.status()).toBe("completed");
    expect(executed).toEqual(["ada", "flaky", "grace", "joan", "mary", "after"]);
  });

  test("of a function's step that was renamed keeps its original idempotency key", async () => {
    const keys: string[] = [];
    const pay = (name: string, aliases?: Record<string, string[]>) =>
      workflow("pay", aliases === undefined ? {} : { aliases }, (ctx) =>
        ctx.step(name, ({ idempotencyKey }) => {
          keys.push(idempotencyKey);
          return flaky();
        }),
      );
    const w = await world();
    const before = await w.worker([pay("bill")]);
    const run = await w.pawl.start(pay("bill"));
    await before.settle();
    await before.worker.stop();
    broken = false;
    const retried = await run.retry();
    await (await w.worker([pay("charge", { charge: ["bill"] })])).settle();
    expect(await retried.result()).toBe("well");
    expect(keys).toEqual([`${run.id}:bill`, `${run.id}:bill`]);
  });

  test("compensates the steps it has taken over, except those that the first run compensated itself", async () => {
    const compensated: string[] = [];
    const wf = workflow("wf", async (ctx) => {
      await ctx.step("one", () => record("one", 1), {
        compensate: ({ idempotencyKey }) => void compensated.push(idempotencyKey),
      });
      await ctx.step("flaky", flaky);
    });
    const w = await memoryWorld(wf);
    const run = await w.pawl.start(wf);
    await w.settle();
    const retried = await run.retry();
    await w.settle();
    expect(await retried.status()).toBe("failed");
    expect(compensated).toEqual([`${run.id}:one#compensate`, `${retried.id}:one#compensate`]);
    expect(executed).toEqual(["one", "one"]);
    expect((await retried.history())[1]?.data).toMatchObject({
      redo: ["one", "flaky"],
      keyRunIds: { one: retried.id },
    });
  });

  test("passes the idempotency key of the first run to jobs, including those of graphs that were built at run time", async () => {
    const keys: string[] = [];
    const pay = job("Pay", (_args: { cents: number }, { idempotencyKey }) => {
      keys.push(idempotencyKey);
      return flaky();
    });
    class Pays extends Workflow {
      static {
        this.step("pay", { job: pay, args: { cents: 1 }, onException: "fail" });
      }
    }
    const w = await world();
    const { settle } = await w.worker([Pays], { jobs: [pay] });
    const run = await w.pawl.start(Pays);
    await settle();
    expect(await run.status()).toBe("failed");
    const built = await w.pawl.build("built", (g) => void g.node("pay", { job: pay, args: { cents: 1 } }));
    await settle();
    // Such a run is paused when a node fails, so the test marks it as failed itself.
    const { id: node } = (await built.nodes())[0] as { id: string };
    const afterSeq = (await w.store.log(built.id, { after: 0, limit: 100 })).length;
    const failed = finish("failed", { error: '{"name":"Error","message":"by hand"}', startedAt: "now" });
    await w.store.commit(batch(null, [transition(built.id, { afterSeq, next: failed })]));
    broken = false;
    const retried = [await run.retry(), await built.retry()];
    await settle();
    for (const one of retried) expect(await one.status()).toBe("completed");
    expect(keys).toEqual([`${run.id}:pay`, `${built.id}:${node}`, `${run.id}:pay`, `${built.id}:${node}`]);
  });

  test.each([
    ["a child", "before"],
    ["children of a map", "before"],
    ["a child", "after"],
    ["children of a map", "after"],
  ])("takes over %s that completed %s the retry, without the parent having seen the result", async (what, when) => {
    const child = workflow("child", async (ctx, n: number) => {
      const word = await ctx.waitForSignal<string>("go");
      return ctx.step("say", () => record(`say ${word} ${n}`, `${word} ${n}`));
    });
    const parent = workflow("parent", async (ctx) => [await ctx.run(child, 0), ...(await ctx.map(child, [1, 2]))]);
    const w = await memoryWorld(child, parent);
    const run = await w.pawl.start(parent);
    const signalChildren = async () => {
      for (const { id } of (await w.pawl.runs({ workflow: child, status: "waiting" })).runs)
        await w.pawl.run(id).signal("go", "hello");
      await w.runToEnd();
    };
    await w.settle();
    if (what !== "a child") await signalChildren();
    // The test marks the parent as failed itself, so that its children are not canceled.
    const afterSeq = (await w.store.log(run.id, { after: 0, limit: 100 })).length;
    const failed = finish("failed", { error: '{"name":"Error","message":"by hand"}', startedAt: "now" });
    await w.store.commit(batch(null, [transition(run.id, { afterSeq, next: failed })]));
    if (when === "before") await signalChildren();
    const retried = await run.retry();
    await w.settle();
    if (when === "after") await signalChildren();
    if (what === "a child") await signalChildren();
    expect(await retried.result()).toEqual(["hello 0", "hello 1", "hello 2"]);
    expect(executed.sort()).toEqual(["say hello 0", "say hello 1", "say hello 2"]);
    expect((await w.pawl.verify()).differences).toEqual([]);
  });

  test("whose worker dies before it has started is started by the next worker", async () => {
    const wf = workflow("wf", async (ctx) => {
      await ctx.step("one", () => record("one", 1));
      return ctx.step("flaky", flaky);
    });
    const w = await world();
    const first = await w.worker([wf]);
    const run = await w.pawl.start(wf);
    await first.settle();
    broken = false;
    const read = w.store.cursors.bind(w.store);
    const died = new Promise<void>((resolve) => {
      // This is the last read before the worker writes what the retry takes over.
      w.store.cursors = async (id) => {
        w.store.cursors = read;
        await first.kill();
        resolve();
        return read(id);
      };
    });
    const retried = await run.retry();
    await died;
    const { settle } = await w.worker([wf]);
    await settle();
    expect(await retried.result()).toBe("well");
    expect(executed).toEqual(["one", "flaky"]);
    expect((await w.pawl.verify()).differences).toEqual([]);
  });

  test("can receive signals, be paused and be canceled before a worker has started it", async () => {
    const wf = workflow("wf", async (ctx) => {
      await ctx.step("one", () => record("one", 1));
      await ctx.step("flaky", flaky);
      return ctx.waitForSignal("go");
    });
    const w = await world();
    const first = await w.worker([wf]);
    const runs = [await w.pawl.start(wf), await w.pawl.start(wf)] as const;
    await first.settle();
    await first.worker.stop();
    broken = false;
    const [retried, canceled] = [await runs[0].retry(), await runs[1].retry()];
    await retried.signal("go", "went");
    await retried.pause();
    await retried.resume();
    await canceled.cancel();
    const { settle } = await w.worker([wf]);
    await settle();
    expect(await retried.result()).toBe("went");
    expect(await canceled.status()).toBe("canceled");
    expect(executed.filter((name) => name === "one")).toHaveLength(2);
    expect((await logOf(retried)).filter((line) => line === "run.forked")).toHaveLength(1);
    expect((await w.pawl.verify()).differences).toEqual([]);
  });
});
