/** Tests beyond the store suite: what waits while the transaction of a step is open, and misuse of transactions. */
import { mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, expect, test, vi } from "vitest";
import { until } from "../../../test/support/waiting.js";
import { TransactionError } from "../../core/errors/errors.js";
import { batch, delay, event, newRun, transition, workerInfo } from "../../testing/store-suite/builders.js";
import type { Hint, Store, StoreOptions } from "../contract/store.js";
import { Connection } from "./connection.js";
import { loadDriver, type SqliteStatement } from "./driver.js";
import { openSqlite, type SqliteHandle } from "./index.js";

const folder = mkdtempSync(join(tmpdir(), "pawl-transaction-"));
const stores: Store[] = [];
let files = 0;
const newFile = () => join(folder, `${++files}.db`);

async function open(file: string, options?: StoreOptions): Promise<Store> {
  const store = await openSqlite(file, options);
  stores.push(store);
  await store.migrate();
  return store;
}

afterEach(async () => {
  for (const store of stores.splice(0)) await store.close();
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const startBatch = (run = newRun()) => batch(null, [], [run]);

const settlesSoon = (work: Promise<unknown>) => Promise.race([work.then(() => true), delay(60).then(() => false)]);

test("while a transaction is open, reads proceed and commits of all stores wait without blocking the event loop", async () => {
  const file = newFile();
  const [store, other] = [await open(file), await open(file)];
  const transaction = await store.beginTransaction();
  let ticks = 0;
  const timer = setInterval(() => {
    ticks += 1;
  }, 5);
  await store.runs({ limit: 1 });
  const commits = [store.commit(startBatch()), other.commit(startBatch()), store.registerWorkflows([])];
  const registered = store.registerWorkflows([{ name: "w", queue: null, version: null, signature: null, graph: null }]);
  expect(await settlesSoon(Promise.any([...commits.slice(0, 2), registered]))).toBe(false);
  // A blocked event loop has no such moment; that of a process that waits for the processor has one later.
  await until(async () => {
    const before = ticks;
    await delay(300);
    return ticks - before > 20;
  });
  clearInterval(timer);
  await transaction.rollback();
  for (const result of await Promise.all(commits.slice(0, 2))) expect(result).toMatchObject({ kind: "committed" });
  await registered;
});

test("in memory, reads wait too, because the only connection would show uncommitted writes", async () => {
  const store = await open(":memory:");
  const transaction = await store.beginTransaction();
  await (transaction.handle as SqliteHandle).query("CREATE TABLE mine (value TEXT)");
  const read = store.runs({ limit: 1 });
  expect(await settlesSoon(read)).toBe(false);
  await transaction.rollback();
  expect(await read).toEqual([]);
});

test("close waits for the open transaction", async () => {
  const store = await openSqlite(newFile());
  await store.migrate();
  const transaction = await store.beginTransaction();
  const closing = store.close();
  expect(await settlesSoon(closing)).toBe(false);
  expect(await transaction.commit(startBatch())).toMatchObject({ kind: "committed" });
  await closing;
});

test("the commit of a transaction renews the lease of its worker, whose heartbeat had to wait", async () => {
  const store = await open(newFile());
  const fence = await store.registerWorker(workerInfo());
  const run = newRun({ due: { kind: "owned" } });
  await store.commit(batch(fence, [], [run]));
  const [before] = await store.workers();
  const transaction = await store.beginTransaction();
  await delay(20);
  await transaction.commit(batch(fence, [transition(run.id, { events: [event("done")] })]));
  expect((await store.workers())[0]?.heartbeatAt).toBeGreaterThan(before?.heartbeatAt ?? Number.POSITIVE_INFINITY);
});

test("the handle runs statements until the transaction ends, and throws after that", async () => {
  const store = await open(newFile());
  const transaction = await store.beginTransaction();
  const handle = transaction.handle as SqliteHandle;
  handle.exec("CREATE TABLE mine (value TEXT)");
  expect(await handle.query("INSERT INTO mine VALUES (?)", ["a"])).toEqual([]);
  expect(await handle.query("SELECT value FROM mine WHERE value = ?", ["a"])).toMatchObject([{ value: "a" }]);
  await transaction.rollback();
  expect(() => handle.prepare("SELECT 1")).toThrow("has ended");
  await expect(handle.query("SELECT 1")).rejects.toThrow("has ended");
  await expect(transaction.commit(startBatch())).rejects.toThrow("has ended");
  await transaction.rollback();
  await store.commit(startBatch());
});

/** Statements that roll the whole transaction back without being a ROLLBACK. */
const implicitRollbacks = {
  "a conflict clause": "INSERT OR ROLLBACK INTO mine VALUES (1)",
  "a constraint of the table": "INSERT INTO strict_one VALUES (1)",
  "a trigger": "INSERT INTO mine VALUES (-1)",
};
const tables = `CREATE TABLE mine (value INTEGER PRIMARY KEY);
  CREATE TABLE strict_one (value INTEGER UNIQUE ON CONFLICT ROLLBACK);
  CREATE TRIGGER no_negatives BEFORE INSERT ON mine WHEN new.value < 0 BEGIN SELECT RAISE(ROLLBACK, 'negative'); END;
  INSERT INTO mine VALUES (1); INSERT INTO strict_one VALUES (1);`;

test.each(Object.entries(implicitRollbacks))(
  "after a rollback of the whole transaction by %s, later statements and the commit are refused",
  async (_name, sql) => {
    const file = newFile();
    const store = await open(file);
    const { Database } = await loadDriver();
    const database = new Database(file);
    database.exec(tables);
    const transaction = await store.beginTransaction();
    const handle = transaction.handle as SqliteHandle;
    const insert = handle.prepare("INSERT INTO mine VALUES (?)");
    insert.run(2);
    expect(() => handle.exec(sql)).toThrow(TransactionError);
    expect(() => insert.run(3)).toThrow(TransactionError);
    expect(() => handle.exec("INSERT INTO mine VALUES (4)")).toThrow(TransactionError);
    const run = newRun();
    await expect(transaction.commit(startBatch(run))).rejects.toThrow(TransactionError);
    expect(await store.run(run.id)).toBeNull();
    expect(database.prepare("SELECT value FROM mine").all()).toMatchObject([{ value: 1 }]);
    database.close();
  },
);

test("an error that rolls back only its statement leaves the transaction usable", async () => {
  const store = await open(newFile());
  const transaction = await store.beginTransaction();
  const handle = transaction.handle as SqliteHandle;
  handle.exec("CREATE TABLE mine (value INTEGER PRIMARY KEY); INSERT INTO mine VALUES (1)");
  expect(() => handle.exec("INSERT INTO mine VALUES (1)")).toThrow("UNIQUE");
  const run = newRun();
  expect(await transaction.commit(startBatch(run))).toMatchObject({ kind: "committed" });
  expect(await store.run(run.id)).not.toBeNull();
});

test("prepared statements and open iterators end with their transaction", async () => {
  const store = await open(newFile());
  const transaction = await store.beginTransaction();
  const handle = transaction.handle as SqliteHandle;
  handle.exec("CREATE TABLE mine (value INTEGER PRIMARY KEY); INSERT INTO mine VALUES (1), (2), (3)");
  const statement = handle.prepare("SELECT value FROM mine") as SqliteStatement & { iterate(): Iterator<unknown> };
  const rows = statement.iterate();
  expect(rows.next().value).toMatchObject({ value: 1 });
  await transaction.rollback();
  expect(() => rows.next()).toThrow(TransactionError);
  expect(() => statement.all()).toThrow(TransactionError);
  expect(Reflect.get(statement, "database")).toBeUndefined();
  await store.commit(startBatch());
});

test("starting a run with a handle whose transaction has ended is refused", async () => {
  const store = await open(newFile());
  const transaction = await store.beginTransaction();
  await transaction.rollback();
  const run = newRun();
  await expect(store.startInTransaction(transaction.handle, [run])).rejects.toThrow(TransactionError);
  expect(await store.run(run.id)).toBeNull();
});

test("runs started with a transaction's handle exist only if it commits, and then a hint is emitted", async () => {
  const store = await open(":memory:");
  const hints: Hint[] = [];
  store.watch((hint) => hints.push(hint));
  const [lost, kept] = [newRun(), newRun()];
  const first = await store.beginTransaction();
  await store.startInTransaction(first.handle, [lost]);
  await first.rollback();
  const second = await store.beginTransaction();
  await store.startInTransaction(second.handle, [kept]);
  expect(hints).toEqual([]);
  await second.commit(batch(null, []));
  expect(hints).toEqual([{ kind: "ready", workflows: [kept.workflow] }]);
  expect(await store.runsById([lost.id, kept.id])).toMatchObject([{ id: kept.id }]);
});

test("runs are started with any object that has a query method", async () => {
  const file = newFile();
  const store = await open(file);
  const first = newRun({ startKey: "k", heroKey: "h" });
  await store.commit(startBatch(first));
  const { Database } = await loadDriver();
  const database = new Database(file);
  const connection = new Connection(database);
  const tx = { query: async (sql: string, values: readonly unknown[]) => connection.query(sql, values) };
  database.exec("BEGIN IMMEDIATE");
  const fine = newRun();
  const byKey = newRun({ workflow: first.workflow, startKey: "k" });
  const byHero = newRun({ heroKey: "h" });
  const { refused } = await store.startInTransaction(tx, [fine, first, byKey, byHero]);
  expect(refused).toMatchObject([
    { runId: byKey.id, reason: "startKey", existing: { id: first.id } },
    { runId: byHero.id, reason: "heroKey", existing: { id: first.id } },
  ]);
  expect(await store.run(fine.id)).toBeNull();
  database.exec("COMMIT");
  database.close();
  expect(await store.run(fine.id)).toMatchObject({ status: "pending" });
});

test("a value that is no transaction, or a transaction on another file, is refused", async () => {
  const store = await open(newFile());
  const { Database } = await loadDriver();
  const other = new Database(newFile());
  await expect(store.startInTransaction(other, [newRun()])).rejects.toThrow("no open transaction");
  other.exec("BEGIN IMMEDIATE");
  await expect(store.startInTransaction(other, [newRun()])).rejects.toThrow("but this store is sqlite");
  other.close();
  class ForeignDatabase extends Object {
    prepare() {}
    exec() {}
  }
  await expect(store.startInTransaction(new ForeignDatabase(), [newRun()])).rejects.toThrow("another SQLite library");
  for (const invalid of [undefined, null, 7, {}]) {
    await expect(store.startInTransaction(invalid, [newRun()])).rejects.toThrow("a database with an open transaction");
  }
});

test("timers fire while commits follow each other without a pause", async () => {
  const store = await open(newFile());
  let ticks = 0;
  const timer = setInterval(() => {
    ticks += 1;
  }, 1);
  let commits = 0;
  for (; ticks < 5 && commits < 20_000; commits += 1) await store.commit(startBatch());
  clearInterval(timer);
  expect(commits).toBeLessThan(20_000);
});

function isOpenOn(connection: Connection, file: string): boolean {
  try {
    return connection.query("PRAGMA database_list")[0]?.file === realpathSync(file);
  } catch {
    return false; // It is closed, and the store of this test is not.
  }
}

test("a watched store that is idle runs no statement", async () => {
  const file = newFile();
  const store = await open(file);
  await store.commit(startBatch());
  let hints = 0;
  store.watch(() => {
    hints += 1;
  });
  await delay(400);
  const spies = (["run", "get", "all", "query"] as const).map((name) => vi.spyOn(Connection.prototype, name));
  await delay(500);
  const users = spies.flatMap((spy) => spy.mock.contexts as Connection[]);
  for (const spy of spies) spy.mockRestore();
  // Stores of other files may be open in this process, and busy.
  expect(users.filter((user) => isOpenOn(user, file))).toEqual([]);
  expect(hints).toBe(0);
});

test("with notify: false, commits of other stores cause no hint", async () => {
  const file = newFile();
  const [store, other] = [await open(file, { notify: false }), await open(file)];
  const hints: Hint[] = [];
  store.watch((hint) => hints.push(hint));
  await other.commit(startBatch());
  await delay(300);
  expect(hints).toEqual([]);
});
