/** Runs are found and signaled by the idempotency key or the hero that the rest of the program knows. */
import { connect, signal, Workflow, workflow } from "pawl";
import { describe, expect, onTestFinished, test } from "vitest";
import { forEachStore, type StoreKind, testDatabase } from "../support/databases.js";
import { forMemoryAnd } from "../support/effort.js";
import { logOf } from "../support/run-checks.js";
import { libsqlTable, mysqlTable, postgresTable, sqliteTable } from "../support/user-table.js";
import { silent, start, world } from "../support/virtual-worlds.js";
import { errorOf } from "../support/waiting.js";

const paid = signal<{ cents: number }>("paid");
const order = workflow("order", async (ctx, _id: string) => (await ctx.waitForSignal(paid))?.cents);
const echo = workflow("echo", async (_ctx, value: number) => value);

async function connected(kind: StoreKind) {
  const database = await testDatabase(kind);
  const pawl = await connect(database.url, { logger: silent });
  onTestFinished(async () => {
    await pawl.close();
    await database.drop();
  });
  return { pawl, url: database.url };
}

forMemoryAnd("sqlite", (kind) => {
  test("a handle says whether start() created the run", async () => {
    const { pawl } = await connected(kind);
    const first = await pawl.start(echo, 1, { idempotencyKey: "k" });
    const again = await pawl.start(echo, 1, { idempotencyKey: "k" });
    expect([first.created, again.created, again.id === first.id]).toEqual([true, false, true]);
    const byName = pawl.workflow<number, number>("echo");
    expect((await byName.trigger(1, { idempotencyKey: "k" })).created).toBe(false);
    expect((await byName.trigger(1)).created).toBe(true);
    expect((await pawl.startMany(echo, [1, 2])).map(({ created }) => created)).toEqual([true, true]);
    const build = () => pawl.build("graph", (g) => g.node("a", { job: "A" }), { idempotencyKey: "g", start: false });
    expect([(await build()).created, (await build()).created]).toEqual([true, false]);
    expect(pawl.run(first.id).created).toBeNull();
  });

  test("a run is found by its idempotency key", async () => {
    const { pawl } = await connected(kind);
    const run = await pawl.start(order, "1", { idempotencyKey: "order-1" });
    await pawl.start(order, "2", { idempotencyKey: "order-2" });
    expect((await pawl.find(order, { idempotencyKey: "order-1" }))?.id).toBe(run.id);
    expect((await pawl.find("order", { idempotencyKey: "order-1" }))?.id).toBe(run.id);
    expect(await pawl.find(order, { idempotencyKey: "ORDER-1" })).toBeNull();
    expect(await pawl.find("echo", { idempotencyKey: "order-1" })).toBeNull();
  });

  test("a signal can be sent to the run with an idempotency key or to the run about a hero", async () => {
    const { pawl } = await connected(kind);
    await pawl.worker({ workflows: [order] }).start();
    const hero = { type: "User", id: "42" };
    const [byKey, byHero] = [
      await pawl.start(order, "1", { idempotencyKey: "order-1" }),
      await pawl.start(order, "2", { hero }),
    ];
    await pawl.signal(order, { idempotencyKey: "order-1" }, paid, { cents: 1 });
    await pawl.signal("order", { hero }, "paid", { cents: 2 });
    expect([await byKey.result({ timeout: "100s" }), await byHero.result({ timeout: "100s" })]).toEqual([1, 2]);
  });

  test("repeating a signal key after the run has ended is a no-op; any other signal to an ended run is refused by name", async () => {
    const { pawl } = await connected(kind);
    await pawl.worker({ workflows: [order] }).start();
    const run = await pawl.start(order, "1", { idempotencyKey: "order-1" });
    await run.signal(paid, { cents: 1 }, { key: "webhook-9" });
    expect(await run.result({ timeout: "100s" })).toBe(1);
    const before = await run.history();
    await run.signal(paid, { cents: 1 }, { key: "webhook-9" });
    await pawl.signal(order, { idempotencyKey: "order-1" }, paid, { cents: 1 }, { key: "webhook-9" });
    const together = await Promise.allSettled([
      run.signal(paid, { cents: 1 }, { key: "webhook-9" }),
      run.signal(paid, { cents: 1 }, { key: "webhook-10" }),
      run.signal(paid, { cents: 1 }, { key: "webhook-9" }),
      run.signal(paid, { cents: 1 }),
    ]);
    expect(together.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled", "rejected"]);
    expect(await run.history()).toEqual(before);
    expect(await errorOf(run.signal(paid, { cents: 1 }))).toMatchObject({
      code: "INVALID_STATE",
      message: `Run ${run.id} is completed and cannot take the signal "paid".`,
    });
  });
});

test("of several runs about a hero, find() returns the active one, otherwise the newest", async () => {
  const t = await start(order);
  const hero = { type: "User", id: "42" };
  const first = await t.pawl.start(order, "1", { hero });
  await first.cancel();
  await t.advance("1 minute");
  const second = await t.pawl.start(order, "2", { hero });
  await t.advance("1 minute");
  expect((await t.pawl.find(order, { hero }))?.id).toBe(second.id);
  const third = await t.pawl.start(order, "3", { hero, allowMultiple: true });
  await third.cancel();
  await t.settle();
  expect((await t.pawl.find(order, { hero }))?.id).toBe(second.id);
  await second.cancel();
  await t.settle();
  expect((await t.pawl.find(order, { hero }))?.id).toBe(third.id);
  expect(await t.pawl.find(order, { hero: { type: "User", id: "43" } })).toBeNull();
});

test("a signal by key or hero is refused when no run or more than one active run matches", async () => {
  const t = await start(order);
  const hero = { type: "User", id: "42" };
  const none = await errorOf(t.pawl.signal(order, { hero }, "paid"));
  expect(none).toMatchObject({ code: "RUN_NOT_FOUND", runId: "" });
  expect(none.message).toBe('A run of workflow "order" about User 42 does not exist; it may have been pruned.');
  expect((await errorOf(t.pawl.signal(order, { idempotencyKey: "k" }, "paid"))).message).toBe(
    'A run of workflow "order" with the idempotency key "k" does not exist; it may have been pruned.',
  );
  for (const n of ["1", "2"]) await t.pawl.start(order, n, { hero, allowMultiple: true });
  expect(await errorOf(t.pawl.signal(order, { hero }, "paid"))).toMatchObject({
    code: "INVALID_STATE",
    message: expect.stringMatching(
      /^Several runs of workflow "order" about User 42 are active, such as .* choose one with run/,
    ),
  });
});

test("find() takes either a key or a hero, not both", async () => {
  const t = await start(order);
  const find = async (by: object) => (await errorOf(t.pawl.find(order, by as never))).message;
  expect(await find({ idempotencykey: "k" })).toContain('find() has no option "idempotencykey"; did you mean');
  expect(await find({})).toContain("pass one of them");
  expect(await find({ idempotencyKey: "k", hero: { type: "User", id: "1" } })).toContain("pass one of them");
  expect(await find({ hero: { type: "User", id: 1 } })).toContain("hero id");
});

test("the handle of a class run that was found has the types of the class", async () => {
  class Greeting extends Workflow<void, { name: string }, string> {
    static {
      this.step("greet", (w) => w.finish(`Hello ${w.input.name}`));
    }
  }
  const t = await start(Greeting);
  await t.speedrun(await t.pawl.start(Greeting, { name: "Ada" }, { idempotencyKey: "k" }));
  const run = await t.pawl.find(Greeting, { idempotencyKey: "k" });
  const text: string | undefined = await run?.result();
  expect(text).toBe("Hello Ada");
});

describe("a signal in the caller's own transaction", () => {
  const tables = { sqlite: sqliteTable, libsql: libsqlTable, postgres: postgresTable, mysql: mysqlTable };
  forEachStore(
    (kind) => {
      test("is sent when the transaction commits, and not when it is rolled back", async () => {
        const { pawl, url } = await connected(kind);
        const table = tables[kind as keyof typeof tables](() => url);
        await table.create();
        const worker = await pawl.worker({ workflows: [order] }).start();
        const run = await pawl.start(order, "1", { idempotencyKey: "order-1" });
        const lost = await table.beginCallerTransaction();
        await table.write(lost.tx, "lost");
        await run.signal(paid, { cents: 1 }, { tx: lost.tx, key: "webhook-9" });
        await lost.rollback();
        const own = await table.beginCallerTransaction();
        await table.write(own.tx, "mine");
        await pawl.signal(order, { idempotencyKey: "order-1" }, paid, { cents: 2 }, { tx: own.tx, key: "webhook-9" });
        expect(await run.status()).not.toBe("completed");
        await own.commit();
        expect(await run.result({ timeout: "100s" })).toBe(2);
        expect(await table.committedValues()).toEqual(["mine"]);
        const late = await table.beginCallerTransaction();
        await run.signal(paid, { cents: 2 }, { tx: late.tx, key: "webhook-9" });
        const refused = await errorOf(run.signal(paid, { cents: 3 }, { tx: late.tx }));
        await late.rollback();
        expect(refused.message).toBe(`Run ${run.id} is completed and cannot take the signal "paid".`);
        await worker.stop();
        expect((await pawl.verify()).differences).toEqual([]);
      });

      test("is refused for a delayed run that has not started", async () => {
        const { pawl, url } = await connected(kind);
        const table = tables[kind as keyof typeof tables](() => url);
        await table.create();
        const run = await pawl.start(order, "1", { delay: "1 hour" });
        const own = await table.beginCallerTransaction();
        const refused = await errorOf(run.signal(paid, { cents: 1 }, { tx: own.tx }));
        await own.commit();
        expect(refused).toMatchObject({ code: "INVALID_STATE", message: expect.stringContaining("without `tx`") });
        expect(await logOf(run)).toEqual([]);
      });

      test("reaches a run that was started in the same transaction", async () => {
        const { pawl, url } = await connected(kind);
        const table = tables[kind as keyof typeof tables](() => url);
        await table.create();
        const own = await table.beginCallerTransaction();
        const run = await pawl.start(order, "1", { tx: own.tx });
        await run.signal(paid, { cents: 1 }, { tx: own.tx });
        await own.commit();
        await pawl.worker({ workflows: [order] }).start();
        expect(await run.result({ timeout: "100s" })).toBe(1);
      });

      test("can be sent in the transaction of a step, and then commits with the record of the step", async () => {
        const { pawl } = await connected(kind);
        const settle = workflow("settle", async (ctx, id: string) => {
          await ctx.transaction(
            "pay",
            async (tx, { attempt }) => {
              await pawl.run(id).signal(paid, { cents: attempt }, { tx });
              if (attempt === 1) throw new Error("rolled back");
            },
            { retry: { initial: 0 } },
          );
        });
        await pawl.worker({ workflows: [order, settle] }).start();
        const run = await pawl.start(order, "1");
        await (await pawl.start(settle, run.id)).result({ timeout: "100s" });
        expect(await run.result({ timeout: "100s" })).toBe(2);
      });
    },
    ["sqlite", "postgres", "mysql"],
  );

  test("is refused by the memory store, and when `tx` is not a transaction", async () => {
    const w = await world();
    const run = await w.pawl.start(order, "1");
    const tx = { query: async () => [] };
    expect((await errorOf(run.signal(paid, { cents: 1 }, { tx }))).message).toContain("send the signal without `tx`");
    expect((await errorOf(run.signal(paid, { cents: 1 }, { tx: 7 }))).message).toContain(
      "`tx` takes the one connection",
    );
    const idle = { query: async () => [], inTransaction: false };
    expect((await errorOf(run.signal(paid, { cents: 1 }, { tx: idle }))).message).toContain(
      "this connection has no open transaction, so the signal would be sent at once. Begin a transaction first.",
    );
  });
});
