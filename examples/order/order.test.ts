import { isDeepStrictEqual } from "node:util";
import { createConnection } from "mysql2/promise";
import type { RunHandle } from "pawl";
import { type TestPawl, testPawl } from "pawl/testing";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { openStore, type StoreKind, type TestDatabase, testDatabase } from "../../test/support/databases.js";
import { forMemoryAnd } from "../../test/support/effort.js";
import { crashAndVerify, storyOf } from "../harness.js";
import { type Books, createTable, type Entry, sqlBooks } from "./books.js";
import { type Order, type Outcome, orderWorkflow } from "./order.js";
import { Payments, Warehouse } from "./shop.js";

const lamp: Order = { id: "lamp", card: "visa", lines: [{ sku: "lamp", quantity: 2, cents: 2_100 }] };

forMemoryAnd("postgres", (kind) => {
  const books = testBooks(kind);
  const payments = new Payments();
  const warehouse = new Warehouse();
  const order = orderWorkflow({ payments, warehouse, books });
  let database: TestDatabase;
  let t: TestPawl | undefined;

  beforeAll(async () => {
    database = await testDatabase(kind);
    await books.open(database.url);
  });
  beforeEach(newDay);
  afterEach(async () => {
    await t?.close();
    t = undefined;
  });
  afterAll(async () => {
    await books.close();
    await database.drop();
  });

  async function newDay(): Promise<void> {
    payments.effects.forget();
    payments.outages = 0;
    warehouse.effects.forget();
    await books.clear();
  }

  async function begin(input: Order): Promise<{ t: TestPawl; run: RunHandle<Order, Outcome> }> {
    t = await testPawl({ workflows: [order], store: database.url });
    return { t, run: await t.pawl.start(order, input) };
  }

  test("an approved order is charged once and shipped", async () => {
    const { t, run } = await begin(lamp);
    await t.advance("3 days");
    expect((await run.get()).waitingFor).toEqual([{ kind: "signal", names: ["approved"] }]);
    await run.signal("approved", { by: "finance" }, { key: "click-1" });
    await t.speedrun(run);
    expect(await run.result()).toEqual({ status: "shipped", parcel: "parcel-lamp", approvedBy: "finance" });
    expect(await storyOf(run)).toEqual([
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
    expect(payments.effects.all).toEqual([{ kind: "charge", cents: 4_200 }]);
    expect(warehouse.effects.all.map(({ kind }) => kind)).toEqual(["reserve", "ship"]);
    expect(await books.entries()).toEqual([{ order: "lamp", cents: 4_200 }]);
    expect((await t.pawl.verify()).differences).toEqual([]);
  });

  test("an order that is not approved within a week is refunded", async () => {
    const { t, run } = await begin(lamp);
    await t.advance("6 days 23h");
    expect(await run.status()).toBe("waiting");
    await t.advance("2h");
    expect(await run.result()).toEqual({ status: "refunded" });
    expect((await storyOf(run)).slice(5)).toEqual([
      "wait.started signal:approved",
      "wait.timed_out signal:approved",
      "step.completed refund",
      "step.completed enter_refund",
      "step.completed release_stock",
      "run.completed",
    ]);
    expect(payments.effects.all.map(({ kind, cents }) => [kind, cents])).toEqual([
      ["charge", 4_200],
      ["refund", 4_200],
    ]);
    expect(await books.entries()).toEqual([
      { order: "lamp", cents: -4_200 },
      { order: "lamp", cents: 4_200 },
    ]);
    expect((await t.pawl.verify()).differences).toEqual([]);
  });

  test("a payment provider that is down is retried after the minute that it asked for", async () => {
    payments.outages = 2;
    const { t, run } = await begin(lamp);
    await t.settle();
    expect((await run.get()).waitingFor).toEqual([{ kind: "retry", step: "charge", attempt: 2 }]);
    await run.signal("approved", { by: "finance" });
    await t.speedrun(run);
    const attempts = (await run.executions()).filter(({ step }) => step === "charge");
    expect(attempts.map(({ outcome }) => outcome)).toEqual([
      "reattempted_by_exception",
      "reattempted_by_exception",
      "success",
    ]);
    const [first, second, third] = attempts.map(({ finishedAt }) => Number(finishedAt)) as [number, number, number];
    expect([second - first, third - second]).toEqual([60_000, 60_000]);
    expect(payments.effects.all).toEqual([{ kind: "charge", cents: 4_200 }]);
  });

  test("a declined card releases the goods and charges nothing", async () => {
    const { t, run } = await begin({ ...lamp, card: "declined" });
    await t.speedrun(run);
    expect(await run.result()).toEqual({ status: "declined" });
    expect((await storyOf(run)).slice(3)).toEqual([
      "step.failed charge",
      "step.completed release_stock",
      "run.completed",
    ]);
    expect(payments.effects.all).toEqual([]);
    expect(await books.entries()).toEqual([]);
  });

  test("an empty order fails immediately with the reason", async () => {
    const { t, run } = await begin({ ...lamp, lines: [] });
    await t.speedrun(run);
    await expect(run.result()).rejects.toMatchObject({
      code: "RUN_FAILED",
      cause: { message: "Order lamp is empty." },
    });
    expect(warehouse.effects.all).toEqual([]);
  });

  const points = kind === "memory" || kind === "sqlite" ? "all" : 8;

  test("an approved order has the same result wherever its worker dies", async () => {
    const { output, verification } = await crashAndVerify(order, lamp, {
      store: database.url,
      points,
      setup: async () => {
        await newDay();
        payments.outages = 1;
      },
      drive: async (run) => {
        const { waitingFor } = await run.get();
        if (waitingFor.some((wait) => wait.kind === "signal")) {
          await run.signal("approved", { by: "finance" }, { key: "click-1" });
        }
      },
      compare: (undisturbed, crashed) => {
        expect(payments.effects.all).toEqual([{ kind: "charge", cents: 4_200 }]);
        expect(warehouse.effects.all.map(({ kind }) => kind)).toEqual(["reserve", "ship"]);
        expectNoMoreRepeatsThanWereInFlight();
        return isDeepStrictEqual(undisturbed, crashed);
      },
    });
    expect(output).toEqual({ status: "shipped", parcel: "parcel-lamp", approvedBy: "finance" });
    expect(verification.differences).toEqual([]);
  });

  test("a refunded order is booked exactly once wherever its worker dies", async () => {
    const trials: number[][] = [];
    const { points: tried, verification } = await crashAndVerify(order, lamp, {
      store: database.url,
      points,
      setup: async () => {
        trials.push((await books.entries()).map(({ cents }) => cents));
        await newDay();
      },
      compare: (undisturbed, crashed) => {
        expect(payments.effects.all.map(({ kind }) => kind)).toEqual(["charge", "refund"]);
        expect(warehouse.effects.all.map(({ kind }) => kind)).toEqual(["reserve", "release"]);
        expectNoMoreRepeatsThanWereInFlight();
        return isDeepStrictEqual(undisturbed, crashed);
      },
    });
    trials.push((await books.entries()).map(({ cents }) => cents));
    // The undisturbed run, and one for each crash point; the books were empty before the first.
    expect(trials).toEqual([[], ...Array.from({ length: tried + 1 }, () => [-4_200, 4_200])]);
    expect(verification.differences).toEqual([]);
  });

  /** One step at a time, so at most one can have been in flight. */
  function expectNoMoreRepeatsThanWereInFlight(): void {
    expect(payments.effects.repeats + warehouse.effects.repeats).toBeLessThanOrEqual(1);
  }
});

/** The books of a test: on the database under test, or a map where there is no SQL. */
interface TestBooks extends Books {
  open(url: string): Promise<void>;
  clear(): Promise<void>;
  /** The smallest amounts first. */
  entries(): Promise<Entry[]>;
  close(): Promise<void>;
}

function testBooks(kind: StoreKind): TestBooks {
  return kind === "memory" ? booksInMemory() : booksInSql(kind);
}

/** A map does not roll back; a repeated entry replaces the first. */
function booksInMemory(): TestBooks {
  const entries = new Map<string, Entry>();
  return {
    open: async () => {},
    enter: async (_tx, entry) => void entries.set(`${entry.order} ${entry.cents}`, entry),
    clear: async () => entries.clear(),
    entries: async () => [...entries.values()].sort((a, b) => a.cents - b.cents),
    close: async () => {},
  };
}

interface Row {
  readonly order_id: string;
  readonly cents: number | string;
}

function booksInSql(kind: StoreKind): TestBooks {
  let store: Awaited<ReturnType<typeof openStore>>;
  /** Uses a transaction of the store, so that the test needs no driver. */
  const execute = async (sql: string): Promise<readonly Row[]> => {
    const transaction = await store.beginTransaction();
    const answer = await (transaction.handle as { query(sql: string, values: unknown[]): Promise<unknown> }).query(
      sql,
      [],
    );
    await transaction.commit({ fence: null, transitions: [], starts: [] });
    return rowsOf(answer);
  };
  return {
    ...sqlBooks(kind === "postgres" ? "$1, $2" : "?, ?"),
    open: async (url) => {
      store = await openStore(kind, url);
      await store.migrate();
      // MySQL commits a transaction that creates a table, so Pawl refuses that in its own transactions.
      if (kind === "mysql") await executeOnMysql(url, createTable);
      else await execute(createTable);
    },
    clear: async () => void (await execute("DELETE FROM payments")),
    entries: async () => {
      const rows = await execute("SELECT order_id, cents FROM payments ORDER BY cents");
      return rows.map(({ order_id, cents }) => ({ order: order_id, cents: Number(cents) }));
    },
    close: () => store.close(),
  };
}

async function executeOnMysql(url: string, sql: string): Promise<void> {
  const connection = await createConnection({ uri: url });
  await connection.query(sql);
  await connection.end();
}

/** `pg` answers `{ rows }`, `mysql2` `[rows, fields]`, SQLite the rows. */
function rowsOf(answer: unknown): readonly Row[] {
  const { rows } = answer as { rows?: readonly Row[] };
  if (rows !== undefined) return rows;
  const [first] = answer as readonly unknown[];
  return (Array.isArray(first) ? first : answer) as readonly Row[];
}
