/** Transactions that user code writes in: each has a state of its own, whatever connection it has or had. */
import { randomUUID } from "node:crypto";
import { type Connection, createConnection } from "mysql2/promise";
import { Pawl, workflow } from "pawl";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { gate, silent, until } from "../../../test/function-style/support.js";
import { isLeftOut, type TestDatabase, testDatabase } from "../../../test/stores/harness.js";
import type { Batch, Fence, NewRun, Store } from "../store.js";
import { openMysql } from "./index.js";

describe.skipIf(isLeftOut("mysql"))("a transaction of user code on MySQL", () => {
  let database: TestDatabase;
  let store: Store;
  let other: Connection;

  beforeAll(async () => {
    database = await testDatabase("mysql");
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

  const enlist = () =>
    store.enlist({ id: randomUUID(), name: "w", host: "h", pid: 1, port: null, routes: [], leaseMs: 60_000 });

  const ownedRun = async (fence: Fence): Promise<string> => {
    const run: NewRun = {
      ...{ id: randomUUID(), workflow: "w", version: "", queue: "w", priority: 0, input: "{}", heroType: null },
      ...{ heroId: null, heroKey: null, tags: [], startKey: null, parentId: null, parentNode: null },
      ...{ parentIndex: null, due: { kind: "owned" } },
    };
    await store.commit({ fence, transitions: [], starts: [run] });
    return run.id;
  };

  const recording = (fence: Fence, runId: string): Batch => {
    const rest = { next: { kind: "keep" }, drained: [], starts: [], mail: [], release: [], cursors: [] } as const;
    const events = [{ type: "step.completed", node: "a", attempt: 1, outcome: "success", data: "1" }];
    return { fence, transitions: [{ runId, after: 0, events, ...rest }], starts: [] };
  };

  const effects = async (): Promise<string[]> =>
    ((await other.query("SELECT what FROM effects ORDER BY what"))[0] as { what: string }[]).map(({ what }) => what);

  test("that failed at its commit does not roll back the one that has its connection next", async () => {
    const fence = await enlist();
    const [failing, ...following] = await Promise.all(Array.from({ length: 11 }, () => ownedRun(fence)));
    const first = await store.begin();
    await (first.handle as Connection).query("SET SESSION innodb_lock_wait_timeout = 1");
    await other.query("START TRANSACTION");
    await other.query("SELECT * FROM pawl_workers WHERE id = ? FOR UPDATE", [fence.workerId]);
    await expect(first.commit(recording(fence, failing as string))).rejects.toMatchObject({ transient: true });
    await other.query("ROLLBACK");
    // As many as there are connections: one of them has the connection of the first, if that was kept.
    const next = await Promise.all(following.map(() => store.begin()));
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

  test("300 runs with a transaction each have their effect exactly once, although a lock is held for longer than they wait", async () => {
    await other.query("DELETE FROM effects");
    const inner = await openMysql(database.url);
    const begin = inner.begin.bind(inner);
    let failedCommits = 0;
    inner.begin = async () => {
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
      // All connections have failed a few times, and the worker asks what became of them for as long as the lock is held.
      await until(() => failedCommits >= 10);
      await other.query("ROLLBACK");
      await Promise.all(runs.map((run) => run.result({ timeout: "100s" })));
      expect(await effects()).toEqual(numbers.map((n) => `payment ${n}`).sort());
      expect((await pawl.verify()).differences).toEqual([]);
    } finally {
      await pawl.close();
    }
  }, 120_000);
});
