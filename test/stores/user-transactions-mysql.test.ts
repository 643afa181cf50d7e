/** Transactions of user code are isolated from each other, whatever connection they use or used. */
import { randomUUID } from "node:crypto";
import { type Connection, createConnection } from "mysql2/promise";
import { Pawl, workflow } from "pawl";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Batch, Fence, NewRun, Store } from "../../src/store/contract/store.js";
import { openMysql } from "../../src/store/mysql/index.js";
import { emptyDatabase, isLeftOut, type TestDatabase } from "../support/databases.js";
import { silent } from "../support/virtual-worlds.js";
import { gate, until } from "../support/waiting.js";

describe.skipIf(isLeftOut("mysql"))("a transaction of user code on MySQL", () => {
  let database: TestDatabase;
  let store: Store;
  let other: Connection;

  beforeAll(async () => {
    database = await emptyDatabase("mysql");
    store = await openMysql(database.url);
    await store.migrate();
    other = await createConnection({ uri: database.url });
    await other.query("CREATE TABLE effects (what VARCHAR(100))");
  });

  afterAll(async () => {
    await other.end();
    await store.close();
    await database.drop();
  });

  const registerWorker = () =>
    store.registerWorker({ id: randomUUID(), name: "w", host: "h", pid: 1, port: null, routes: [], leaseMs: 60_000 });

  const ownedRun = async (fence: Fence): Promise<string> => {
    const run: NewRun = {
      ...{ id: randomUUID(), workflow: "w", version: "", queue: "w", priority: 0, input: "{}", heroType: null },
      ...{ heroId: null, heroKey: null, tags: [], startKey: null, parentId: null, parentNode: null },
      ...{ parentIndex: null, parentAttempt: null, due: { kind: "owned" } },
    };
    await store.commit({ fence, transitions: [], starts: [run] });
    return run.id;
  };

  const recording = (fence: Fence, runId: string): Batch => {
    const rest = {
      next: { kind: "keep" },
      drainedInboxIds: [],
      newChildren: [],
      messages: [],
      releasedChildIds: [],
      cursors: [],
    } as const;
    const events = [{ type: "step.completed", node: "a", attempt: 1, outcome: "success", data: "1" }];
    return { fence, transitions: [{ runId, afterSeq: 0, events, ...rest }], starts: [] };
  };

  const effects = async (): Promise<string[]> =>
    ((await other.query("SELECT what FROM effects ORDER BY what"))[0] as { what: string }[]).map(({ what }) => what);

  test("that failed at its commit does not roll back the next transaction on the same connection", async () => {
    const fence = await registerWorker();
    const [failing, ...following] = await Promise.all(Array.from({ length: 11 }, () => ownedRun(fence)));
    const first = await store.beginTransaction();
    await (first.handle as Connection).query("SET SESSION innodb_lock_wait_timeout = 1");
    await other.query("START TRANSACTION");
    await other.query("SELECT * FROM pawl_workers WHERE id = ? FOR UPDATE", [fence.workerId]);
    await expect(first.commit(recording(fence, failing as string))).rejects.toMatchObject({ transient: true });
    await other.query("ROLLBACK");
    // As many transactions as there are connections: one of them gets the connection of the first, if it was kept.
    const next = await Promise.all(following.map(() => store.beginTransaction()));
    const write = (handle: unknown, index: number) =>
      (handle as Connection).query("INSERT INTO effects VALUES (?)", [`next ${index}`]);
    await Promise.all(next.map(({ handle }, index) => write(handle, index)));
    await first.rollback();
    const results = await Promise.all(
      next.map((transaction, index) => transaction.commit(recording(fence, following[index] as string))),
    );
    expect(results.map(({ kind }) => kind)).toEqual(next.map(() => "committed"));
    expect(await effects()).toEqual(next.map((_, index) => `next ${index}`).sort());
  });

  describe("that user code ends by SQL", () => {
    beforeAll(async () => {
      const procedure = (name: string, body: string) => other.query(`CREATE PROCEDURE ${name}() BEGIN ${body} END`);
      await procedure("commits", "COMMIT;");
      await procedure("commits_and_reads", "COMMIT; SELECT 1 AS one;");
      await procedure("begins_anew", "COMMIT; START TRANSACTION;");
      await procedure("rolls_back", "ROLLBACK;");
      await procedure("fails", "ROLLBACK; SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'no';");
      await procedure("only_reads", "SELECT 1 AS one; SELECT 2 AS two;");
    });

    const attempt = async (attack: (tx: Connection) => Promise<unknown>) => {
      const fence = await registerWorker();
      const runId = await ownedRun(fence);
      const transaction = await store.beginTransaction();
      await other.query("DELETE FROM effects");
      const tx = transaction.handle as Connection;
      await tx.query("INSERT INTO effects VALUES ('before')");
      const seen = await attack(tx).then(
        () => null,
        (error: unknown) => error,
      );
      const late = await tx.query("INSERT INTO effects VALUES ('after')").then(
        () => "written",
        (error: { code?: string }) => error.code,
      );
      const result = await transaction.commit(recording(fence, runId)).catch((error: unknown) => error);
      return { seen, late, result, effects: await effects(), log: await store.log(runId, { after: 0, limit: 1 }) };
    };

    test.each([
      "CALL commits()",
      "CALL commits_and_reads()",
      "CALL rolls_back()",
      "CALL fails()",
      "EXECUTE IMMEDIATE 'COMMIT'",
      "EXECUTE IMMEDIATE 'CREATE TABLE IF NOT EXISTS made (id INT)'",
    ])("by %s is detected before anything else is written, and nothing is recorded", async (attack) => {
      const { late, result, effects: left, log } = await attempt((tx) => tx.query(attack));
      expect(late).toBe("TRANSACTION_ERROR");
      expect(result).toMatchObject({ code: "TRANSACTION_ERROR" });
      expect(left).not.toContain("after");
      expect(log).toEqual([]);
    });

    test("and begins again is a different transaction: nothing is recorded, and its writes are rolled back", async () => {
      const { late, result, effects: left, log } = await attempt((tx) => tx.query("CALL begins_anew()"));
      expect(late).toBe("written");
      expect(result).toMatchObject({ code: "TRANSACTION_ERROR" });
      expect(left).not.toContain("after");
      expect(log).toEqual([]);
    });

    test.each([
      "COMMIT",
      "ROLLBACK",
      "START TRANSACTION",
      "SET autocommit = 1",
      "XA START 'x'",
      "CREATE TABLE made (id INT)",
      "DROP TABLE IF EXISTS made",
      "ALTER TABLE effects COMMENT = ''",
      "TRUNCATE effects",
      "RENAME TABLE effects TO others",
      "GRANT SELECT ON effects TO CURRENT_USER",
      "LOCK TABLES effects WRITE",
      "BEGIN NOT ATOMIC COMMIT; END",
      "/*! COMMIT */",
    ])("by %s is refused before the statement is sent, and no effect of the step remains", async (attack) => {
      for (const send of [
        (tx: Connection) => tx.query(attack),
        (tx: Connection) => tx.execute(attack),
        (tx: Connection) => tx.query({ sql: attack }),
        async (tx: Connection) => (await tx.prepare(attack)).execute([]),
      ]) {
        const { seen, result, effects: left, log } = await attempt(send);
        expect(seen).toMatchObject({ code: "TRANSACTION_ERROR" });
        expect(result).toBe(seen);
        expect(left).toEqual([]);
        expect(log).toEqual([]);
      }
    });

    test("by the driver's own methods is refused", async () => {
      for (const name of ["commit", "rollback", "beginTransaction", "reset", "end"] as const) {
        const { seen } = await attempt((tx) => tx[name]() as Promise<unknown>);
        expect(seen).toMatchObject({ code: "TRANSACTION_ERROR" });
      }
    });

    test("is not confused with harmless statements: failing statements, savepoints, procedures that only read", async () => {
      const harmless = async (tx: Connection) => {
        await expect(tx.query("INSERT INTO no_such_table VALUES (1)")).rejects.toThrow(/no_such_table/);
        await tx.query("SAVEPOINT mine");
        await tx.query("INSERT INTO effects VALUES ('undone')");
        await tx.query("ROLLBACK TO SAVEPOINT mine");
        const [sets] = await tx.query("CALL only_reads()");
        expect(sets).toMatchObject([[{ one: 1 }], [{ two: 2 }], {}]);
        const [rows] = await tx.execute("SELECT ? AS n", ["COMMIT"]);
        expect(rows).toEqual([{ n: "COMMIT" }]);
      };
      const { seen, result, effects: left } = await attempt(harmless);
      expect(seen).toBeNull();
      expect(result).toMatchObject({ kind: "committed" });
      expect(left).toEqual(["after", "before"]);
    });
  });

  test("that catches a lock timeout can continue, because only that statement was rolled back", async () => {
    await other.query("DELETE FROM effects");
    await other.query("CREATE TABLE counters (id INT PRIMARY KEY)");
    await other.query("INSERT INTO counters VALUES (1)");
    const fence = await registerWorker();
    const runId = await ownedRun(fence);
    const { handle, commit } = await store.beginTransaction();
    const tx = handle as Connection;
    await tx.query("SET SESSION innodb_lock_wait_timeout = 1");
    await tx.query("INSERT INTO effects VALUES ('kept')");
    await other.query("START TRANSACTION");
    await other.query("SELECT * FROM counters FOR UPDATE");
    await expect(tx.query("DELETE FROM counters")).rejects.toMatchObject({ errno: 1205 });
    await other.query("ROLLBACK");
    expect(await commit(recording(fence, runId))).toMatchObject({ kind: "committed" });
    expect(await effects()).toEqual(["kept"]);
  });

  test("is not recorded when a statement that was not awaited fails", async () => {
    await other.query("DELETE FROM effects");
    const fence = await registerWorker();
    const runId = await ownedRun(fence);
    const { handle, commit } = await store.beginTransaction();
    void (handle as Connection).query("INSERT INTO effects SELECT SLEEP(0.1)");
    void (handle as Connection).query("INSERT INTO no_such_table VALUES (1)");
    await expect(commit(recording(fence, runId))).rejects.toMatchObject({ code: "TRANSACTION_ERROR" });
    expect(await effects()).toEqual([]);
  });

  test("does not send statements that were queued after the one that ended it", async () => {
    await other.query("DELETE FROM effects");
    const { handle, rollback } = await store.beginTransaction();
    const tx = handle as Connection;
    const answers = await Promise.allSettled([
      tx.query("CALL rolls_back()"),
      tx.query("INSERT INTO effects VALUES ('behind')"),
    ]);
    expect(answers.map(({ status }) => status)).toEqual(["rejected", "rejected"]);
    await rollback();
    expect(await effects()).toEqual([]);
  });

  test("whose code was abandoned has its session ended immediately, which releases its locks", async () => {
    await other.query("DELETE FROM effects");
    const { handle, rollback } = await store.beginTransaction();
    const tx = handle as Connection;
    await tx.query("INSERT INTO effects VALUES ('late')");
    const [[{ id }]] = (await tx.query("SELECT CONNECTION_ID() AS id")) as unknown as [[{ id: number }]];
    const slow = tx.query("INSERT INTO effects SELECT SLEEP(60)");
    const failed = expect(slow).rejects.toThrow();
    await rollback({ discard: true });
    await failed;
    const isThere = async () =>
      ((await other.query("SELECT id FROM information_schema.processlist WHERE id = ?", [id]))[0] as object[]).length >
      0;
    await until(async () => !(await isThere()));
    expect(await effects()).toEqual([]);
    await expect(tx.query("SELECT 1")).rejects.toMatchObject({ code: "TRANSACTION_ERROR" });
  });

  test("300 runs with a transaction each have their effect exactly once, although a lock is held for longer than their timeout", async () => {
    await other.query("DELETE FROM effects");
    const inner = await openMysql(database.url);
    const begin = inner.beginTransaction.bind(inner);
    let failedCommits = 0;
    inner.beginTransaction = async () => {
      const { handle, commit, rollback } = await begin();
      const counted = (error: unknown) => {
        failedCommits += 1;
        throw error;
      };
      return { handle, rollback, commit: (batch) => commit(batch).catch(counted) };
    };
    const pawl = new Pawl(inner, silent);
    const begun = gate();
    const locked = gate();
    const pay = workflow("pay", (ctx, n: number) =>
      ctx.transaction(
        "pay",
        async (tx: Connection) => {
          begun.open();
          await locked.opened;
          await tx.query("SET SESSION innodb_lock_wait_timeout = 1");
          await tx.query("INSERT INTO effects VALUES (?)", [`payment ${n}`]);
        },
        { retry: { attempts: 50, initial: 1, max: 50 } },
      ),
    );
    try {
      await pawl.worker({ workflows: [pay], concurrency: 100, lease: "60s", poll: 100 }).start();
      const numbers = Array.from({ length: 300 }, (_, n) => n);
      const runs = await pawl.startMany(pay, numbers);
      await begun.opened;
      await other.query("START TRANSACTION");
      await other.query("SELECT * FROM pawl_workers FOR UPDATE");
      locked.open();
      // All connections have failed a few times, and the worker keeps checking the outcome for as long as the lock is
      // held.
      await until(() => failedCommits >= 10);
      await other.query("ROLLBACK");
      await Promise.all(runs.map((run) => run.result({ timeout: "100s" })));
      expect(await effects()).toEqual(numbers.map((n) => `payment ${n}`).sort());
      expect((await pawl.verify()).differences).toEqual([]);
    } finally {
      await pawl.close();
    }
  }, 300_000);
});
