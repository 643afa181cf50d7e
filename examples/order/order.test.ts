import { isDeepStrictEqual } from "node:util";
import { connect, type HistoryEvent, type RunHandle } from "pawl";
import { crashTest, type TestPawl, testPawl } from "pawl/testing";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { forEachStore, openStore, type StoreKind, type TestDatabase, testDatabase } from "../../test/stores/harness.js";
import { type Books, createTable, type Entry, sqlBooks } from "./books.js";
import { type Order, type Outcome, orderWorkflow } from "./order.js";
import { Payments, Warehouse } from "./shop.js";

const lamp: Order = { id: "lamp", card: "visa", lines: [{ sku: "lamp", quantity: 2, cents: 2_100 }] };

forEachStore((kind) => {
  const shop = { payments: new Payments(), warehouse: new Warehouse(), books: booksFor(kind) };
  const order = orderWorkflow(shop);
  let database: TestDatabase;
  let t: TestPawl;

  beforeAll(async () => {
    database = await testDatabase(kind);
    await shop.books.open(database.url);
  });
  afterAll(async () => {
    await shop.books.close();
    await database.drop();
  });
  beforeEach(newDay);

  async function newDay() {
    shop.payments.effects.forget();
    shop.payments.outages = 0;
    shop.warehouse.effects.forget();
    await shop.books.clear();
  }

  // ── The story, in virtual time ───────────────────────────────────────────────────────────────────────────────────

  async function begin(input: Order): Promise<RunHandle<Order, Outcome>> {
    t = await testPawl({ workflows: [order], store: database.url });
    return t.pawl.start(order, input);
  }
  afterEach(async () => {
    await t?.close();
  });

  test("an approved order is charged once and shipped", async () => {
    const run = await begin(lamp);
    await t.advance("3 days");
    expect((await run.get()).waitingFor).toEqual([{ kind: "signal", names: ["approved"] }]);
    await run.signal("approved", { by: "finance" }, { key: "click-1" });
    await t.speedrun(run);
    expect(await run.result()).toEqual({ status: "shipped", parcel: "parcel-lamp", approvedBy: "finance" });
    expect(story(await run.history())).toEqual([
      "run.started",
      "step.completed validate",
      "step.completed reserve_stock",
      "step.completed charge",
      "step.completed enter_payment",
      "wait.started signal:approved",
      "signal.received",
      "wait.completed signal:approved",
      "step.completed ship",
      "run.completed",
    ]);
    expect(shop.payments.effects.all).toEqual([{ kind: "charge", cents: 4_200 }]);
    expect(shop.warehouse.effects.all.map(({ kind }) => kind)).toEqual(["reserve", "ship"]);
    expect(await shop.books.entries()).toEqual([{ order: "lamp", cents: 4_200 }]);
    expect((await t.pawl.verify()).differences).toEqual([]);
  });

  test("an order that nobody approves within a week is refunded", async () => {
    const run = await begin(lamp);
    await t.advance("6 days 23h");
    expect(await run.status()).toBe("waiting");
    await t.advance("2h");
    expect(await run.result()).toEqual({ status: "refunded" });
    expect(story(await run.history()).slice(5)).toEqual([
      "wait.started signal:approved",
      "wait.timed_out signal:approved",
      "step.completed refund",
      "step.completed enter_refund",
      "step.completed release_stock",
      "run.completed",
    ]);
    const { all } = shop.payments.effects;
    expect(all.reduce((sum, { kind, cents }) => sum + (kind === "charge" ? cents : -cents), 0)).toBe(0);
    expect((await shop.books.entries()).map(({ cents }) => cents).sort()).toEqual([-4_200, 4_200]);
    expect((await t.pawl.verify()).differences).toEqual([]);
  });

  test("a payment provider that is down is asked again when it said, with the same key", async () => {
    shop.payments.outages = 2;
    const run = await begin(lamp);
    await t.settle();
    expect((await run.get()).waitingFor).toEqual([{ kind: "retry", step: "charge", attempt: 2 }]);
    await run.signal("approved", { by: "finance" });
    await t.speedrun(run);
    const charges = (await run.executions()).filter(({ step }) => step === "charge");
    expect(charges.map(({ attempt, outcome }) => [attempt, outcome])).toEqual([
      [1, "reattempted_by_exception"],
      [2, "reattempted_by_exception"],
      [3, "success"],
    ]);
    const pauses = charges.slice(1).map((one, index) => minutesBetween(charges[index]?.finishedAt, one.finishedAt));
    expect(pauses).toEqual([1, 1]);
    expect(shop.payments.effects.all).toEqual([{ kind: "charge", cents: 4_200 }]);
  });

  test("a declined card gives the goods back and charges nothing", async () => {
    const run = await begin({ ...lamp, card: "declined" });
    await t.speedrun(run);
    expect(await run.result()).toEqual({ status: "declined" });
    expect(story(await run.history()).slice(3)).toEqual([
      "step.failed charge",
      "step.completed release_stock",
      "run.completed",
    ]);
    expect(shop.payments.effects.all).toEqual([]);
    expect(await shop.books.entries()).toEqual([]);
  });

  test("an empty order fails at once and tells why", async () => {
    const run = await begin({ ...lamp, lines: [] });
    await t.speedrun(run);
    await expect(run.result()).rejects.toMatchObject({ code: "RUN_FAILED", cause: { message: "Order lamp is empty." } });
    expect(shop.warehouse.effects.all).toEqual([]);
  });

  // ── Crashes ──────────────────────────────────────────────────────────────────────────────────────────────────────

  const points = kind === "memory" || kind === "sqlite" ? "all" : 8;

  test("an approved order comes to the same end wherever its worker dies", async () => {
    const report = await crashTest(order, lamp, {
      store: database.url,
      points,
      setup: async () => {
        await newDay();
        shop.payments.outages = 1;
      },
      drive: async (run) => {
        if ((await run.get()).waitingFor.some(({ kind }) => kind === "signal")) {
          await run.signal("approved", { by: "finance" }, { key: "click-1" });
        }
      },
      compare: (undisturbed, crashed) => {
        expect(shop.payments.effects.all).toEqual([{ kind: "charge", cents: 4_200 }]);
        expect(shop.warehouse.effects.all.map(({ kind }) => kind)).toEqual(["reserve", "ship"]);
        // Only the step that was in flight may have been asked for twice.
        expect(shop.payments.effects.repeats + shop.warehouse.effects.repeats).toBeLessThanOrEqual(1);
        return isDeepStrictEqual(undisturbed, crashed);
      },
    });
    expect(report.output).toEqual({ status: "shipped", parcel: "parcel-lamp", approvedBy: "finance" });
    expect(await shop.books.entries()).toEqual([{ order: "lamp", cents: 4_200 }]);
    await expectNoDifference();
  });
  
  async function expectNoDifference() {
    const pawl = await connect(database.url);
    const { runs, differences } = await pawl.verify();
    await pawl.close();
    expect({ runs: kind === "memory" || runs > 0, differences }).toEqual({ runs: true, differences: [] });
  }
});

interface TestBooks extends Books { open(url: string): Promise<void>; clear(): Promise<void>; entries(): Promise<Entry[]>; close(): Promise<void> }

function booksFor(kind: StoreKind): TestBooks {
  return kind === "memory" ? booksInMemory() : booksInSql(kind);
}
function booksInMemory(): TestBooks {
  const rows = new Map<string, Entry>();
  return {
    open: async () => {}, close: async () => {},
    clear: async () => rows.clear(),
    entries: async () => [...rows.values()],
    enter: async (_tx, entry) => void rows.set(`${entry.order} ${entry.cents}`, entry),
  };
}
function booksInSql(kind: StoreKind): TestBooks {
  let store: Awaited<ReturnType<typeof openStore>>;
  const execute = async (sql: string): Promise<Entry[]> => {
    const tx = await store.begin();
    const answer: any = await (tx.handle as any).query(sql, []);
    await tx.commit({ fence: null, transitions: [], starts: [] });
    return (answer.rows ?? (Array.isArray(answer[0]) ? answer[0] : answer)) as Entry[];
  };
  return {
    ...sqlBooks(kind === "postgres" ? "$1, $2" : "?, ?"),
    open: async (url) => { store = await openStore(kind, url); await store.migrate(); await execute(createTable); },
    close: () => store.close(),
    clear: async () => void (await execute("DELETE FROM payments")),
    entries: async () => (await execute("SELECT order_id, cents FROM payments") as any[]).map(({ order_id, cents }) => ({ order: order_id, cents: Number(cents) })),
  };
}

/** Steps that take longer than a moment also record their start; that depends on the machine. */
function story(history: readonly HistoryEvent[]): string[] {
  return history.filter(({ type }) => type !== "step.started").map(({ type, node }) => (node === null ? type : `${type} ${node}`));
}
const minutesBetween = (from: Date | null | undefined, to: Date | null) => (Number(to) - Number(from)) / 60_000;
