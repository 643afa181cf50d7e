/** What a transactional step can and cannot do with its `pg` client. */
import pg from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { emptyDatabase, isLeftOut, openStore, type TestDatabase } from "../../../../test/support/databases.js";
import { TransactionError } from "../../../core/errors/errors.js";
import { batch, newRun } from "../../../testing/store-suite/builders.js";
import type { Store } from "../../contract/store.js";

type Row = { readonly n: number };

describe.skipIf(isLeftOut("postgres"))("the client of a transactional step", () => {
  let database: TestDatabase;
  let store: Store;
  let admin: pg.Client;

  beforeAll(async () => {
    database = await emptyDatabase("postgres");
    store = await openStore("postgres", database.url);
    await store.migrate();
    admin = new pg.Client({ connectionString: database.url });
    await admin.connect();
    await admin.query("CREATE TABLE mine (n int)");
  });

  afterAll(async () => {
    await admin.end();
    await store.close();
    await database.drop();
  });

  const begin = async () => {
    const transaction = await store.beginTransaction();
    return { transaction, tx: transaction.handle as pg.PoolClient };
  };
  const batchStarting = (run = newRun()) => batch(null, [], [run]);

  test("accepts text, config objects, callbacks, prepared statements and pg.Query, and is an instance of pg.Client", async () => {
    const { transaction, tx } = await begin();
    expect(tx).toBeInstanceOf(pg.Client);
    expect(tx.escapeIdentifier('a"b')).toBe('"a""b"');
    expect((await tx.query<Row>("SELECT 1 AS n")).rows).toEqual([{ n: 1 }]);
    expect((await tx.query<Row>({ text: "SELECT $1::int AS n", values: [2] })).rows).toEqual([{ n: 2 }]);
    expect((await tx.query<[number]>({ name: "three", text: "SELECT 3", rowMode: "array" })).rows).toEqual([[3]]);
    const called = await new Promise((resolve) => tx.query("SELECT 4 AS n", (_error, { rows }) => resolve(rows)));
    expect(called).toEqual([{ n: 4 }]);
    const rows = await new Promise((resolve, reject) => {
      const receivedRows: unknown[] = [];
      const query = tx.query(new pg.Query<Row, []>("SELECT 5 AS n"));
      query.on("row", (row) => receivedRows.push(row));
      query.on("end", () => resolve(receivedRows));
      query.on("error", reject);
    });
    expect(rows).toEqual([{ n: 5 }]);
    tx.release();
    expect(await transaction.commit(batchStarting())).toMatchObject({ kind: "committed" });
  });

  test("refuses transaction control in every form of query, and the transaction cannot be committed afterwards", async () => {
    const forms: ((tx: pg.PoolClient) => unknown)[] = [
      (tx) => tx.query("COMMIT"),
      (tx) => tx.query({ text: "ROLLBACK" }),
      (tx) => tx.query({ name: "end", text: "end", values: [] }),
      (tx) => new Promise((_, reject) => tx.query("COMMIT", [], reject)),
      async (tx) => tx.query(new pg.Query("COMMIT")),
      (tx) => tx.query("SELECT 1; BEGIN"),
      (tx) => tx.query("PREPARE TRANSACTION 'x'"),
    ];
    for (const form of forms) {
      const { transaction, tx } = await begin();
      await tx.query("INSERT INTO mine VALUES (1)");
      await expect(form(tx)).rejects.toBeInstanceOf(TransactionError);
      const run = newRun();
      await expect(transaction.commit(batchStarting(run))).rejects.toBeInstanceOf(TransactionError);
      await transaction.rollback();
      expect(await store.run(run.id)).toBeNull();
    }
    expect((await admin.query("SELECT * FROM mine")).rows).toEqual([]);
  });

  test("refuses end and connect, hides the protocol connection, and keeps assigned properties to itself", async () => {
    const { transaction, tx } = await begin();
    expect(() => tx.end()).toThrow(TransactionError);
    expect(() => tx.connect()).toThrow(TransactionError);
    expect(Reflect.get(tx, "connection")).toBeUndefined();
    expect(await tx.query({} as pg.QueryConfig).catch((error: unknown) => error)).toBeInstanceOf(TransactionError);
    const { query } = tx;
    tx.query = (() => "mine") as never;
    expect(tx.query("SELECT 1")).toBe("mine");
    await transaction.rollback();
    const next = await begin();
    expect((await next.tx.query("SELECT 1 AS n")).rows).toEqual([{ n: 1 }]);
    await expect(query("SELECT 1")).rejects.toThrow("This transaction has ended");
    await next.transaction.rollback();
  });

  test("a rollback during a running statement closes the connection and ends its session", async () => {
    const { transaction, tx } = await begin();
    const { rows } = await tx.query<{ pid: number }>("SELECT pg_backend_pid() AS pid");
    const slow = tx.query("INSERT INTO mine SELECT 1 FROM pg_sleep(60)").catch((error: unknown) => error);
    await transaction.rollback();
    expect(await slow).toBeInstanceOf(Error);
    const alive = await admin.query("SELECT 1 FROM pg_stat_activity WHERE pid = $1", [rows[0]?.pid]);
    expect(alive.rows).toEqual([]);
  });

  test("a commit fails and records nothing when the session was terminated", async () => {
    const { transaction, tx } = await begin();
    const { rows } = await tx.query<{ pid: number }>("SELECT pg_backend_pid() AS pid");
    await admin.query("SELECT pg_terminate_backend($1)", [rows[0]?.pid]);
    const run = newRun();
    await expect(transaction.commit(batchStarting(run))).rejects.toMatchObject({
      code: "STORE_ERROR",
      transient: true,
    });
    expect(await store.run(run.id)).toBeNull();
  });
});
