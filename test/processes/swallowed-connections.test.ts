/**
 * Open connections swallow every packet, for ever and without breaking, while new ones work: a firewall that forgot
 * them, or a host that disappeared. A worker must not wait for an answer that never comes.
 */
import { connect, type Pawl, workflow } from "pawl";
import { afterEach, beforeEach, expect, test } from "vitest";
import { CuttingProxy } from "../support/cutting-proxy.js";
import { forEachStore, type TestDatabase, testDatabase } from "../support/databases.js";
import { type RawSql, rawSql } from "../support/raw-sql.js";
import { Gate, until } from "../support/waiting.js";

const silent = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };
const lease = "3s";

/** Sessions that have been waiting for a lock for longer than a third of the lease. */
const lockedFor2s = {
  postgres: `SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'
    AND now() - query_start > interval '2 seconds'`,
  mysql: `SELECT id FROM information_schema.processlist WHERE db = DATABASE() AND command = 'Query' AND time >= 2
    AND info LIKE '%pawl_workers%' AND id <> CONNECTION_ID()`,
};

forEachStore(
  (kind) => {
    let database: TestDatabase;
    let proxy: CuttingProxy;
    let sql: RawSql;
    /** The URL of the database through the proxy. */
    let pawl: Pawl;

    beforeEach(async () => {
      database = await testDatabase(kind);
      proxy = await CuttingProxy.open(database.url);
      sql = await rawSql(database.url);
      await sql.query("CREATE TABLE effects (what varchar(50))");
      pawl = await connect(proxy.url, { logger: silent });
    });

    afterEach(async () => {
      await pawl.close();
      await proxy.close();
      await sql.close();
      await database.drop();
    });

    const effects = async () => (await sql.query("SELECT what FROM effects ORDER BY what")).map(({ what }) => what);
    type Tx = { query(sql: string): Promise<unknown> };

    test("a worker whose connections are swallowed continues, and nothing is lost or done twice", async () => {
      const gate = new Gate();
      let waiting = 0;
      const wf = workflow("swallowed", async (ctx, n: number) => {
        await ctx.step("wait", async () => {
          waiting += 1;
          await gate.opened;
        });
        await ctx.step("next", () => {});
        await ctx.transaction("write", async (tx: Tx) => {
          await tx.query(`INSERT INTO effects VALUES ('run ${n}')`);
        });
        await ctx.sleep("nap", 20);
        return n;
      });
      await pawl.worker({ workflows: [wf], lease, concurrency: 50 }).start();
      const numbers = Array.from({ length: 20 }, (_, n) => n);
      const runs = await pawl.startMany(wf, numbers);
      await until(() => waiting === 20);
      proxy.swallowOpen();
      gate.open();
      expect(await Promise.all(runs.map((run) => run.result()))).toEqual(numbers);
      expect(await effects()).toEqual(numbers.map((n) => `run ${n}`).sort());
      expect((await pawl.verify()).differences).toEqual([]);
    }, 300_000);

    test("a client whose connections are swallowed still gets its answers", async () => {
      const wf = workflow("asked", (ctx) => ctx.waitForSignal("go"));
      const run = await pawl.start(wf);
      // The timeout of a statement depends on the lease of the workers in the same process.
      await pawl.worker({ workflows: [workflow("other", () => {})], lease }).start();
      proxy.swallowOpen();
      expect(await run.status()).toBe("pending");
      proxy.swallowOpen();
      await pawl.start(wf, undefined, { idempotencyKey: "once" });
      proxy.swallowOpen();
      await run.signal("go", 1, { key: "once" });
      expect((await pawl.runs({ workflow: wf })).runs).toHaveLength(2);
    }, 300_000);

    // The proxy cannot read the contents of a web socket, and libSQL has no locks but the write lock.
    if (kind === "sqld") return;

    test("a client whose connections are swallowed, and then those that end their sessions, still gets its answers", async () => {
      await pawl.worker({ workflows: [workflow("other", () => {})], lease }).start();
      const run = await pawl.start(workflow("asked", (ctx) => ctx.waitForSignal("go")));
      proxy.swallowOpen();
      // The first try follows the loss of a connection, the next one precedes the use of another.
      const marks = [kind === "postgres" ? "pg_terminate_backend" : "KILL"];
      for (const lose of ["time", "time"] as const) proxy.cut({ marks, lose });
      expect(await run.status()).toBe("pending");
      await until(() => proxy.cuts === 2);
    }, 300_000);

    test("a COMMIT that is swallowed and arrives late has no effect in addition to that of the next attempt", async () => {
      const wf = workflow("late", (ctx) =>
        ctx.transaction(
          "pay",
          async (tx: Tx, { attempt }) => {
            await tx.query(`INSERT INTO effects VALUES ('attempt ${attempt}')`);
            return "the-receipt";
          },
          { retry: { attempts: 3, initial: 20 } },
        ),
      );
      await pawl.worker({ workflows: [wf], lease }).start();
      proxy.cut({ marks: ["the-receipt", "COMMIT"], lose: "time" });
      const run = await pawl.start(wf);
      expect(await run.result()).toBe("the-receipt");
      await proxy.hasCut();
      proxy.deliverLate();
      expect(await effects()).toEqual(["attempt 2"]);
      expect((await pawl.verify()).differences).toEqual([]);
    }, 300_000);

    test("a statement that waits for a lock is not given up, however long it waits", async () => {
      const wf = workflow("locked", (ctx) => ctx.step("one", () => 1));
      const worker = await pawl.worker({ workflows: [wf], lease }).start();
      const own = await rawSql(database.url);
      await own.query("BEGIN");
      await own.query("SELECT * FROM pawl_workers FOR UPDATE");
      // The start itself may wait, if the local worker adopts the run.
      const result = pawl.start(wf).then((run) => run.result());
      await until(async () => (await sql.query(lockedFor2s[kind as "postgres" | "mysql"])).length > 0);
      await own.query("ROLLBACK");
      await own.close();
      expect(await result).toBe(1);
      await worker.stop();
    }, 300_000);
  },
  ["postgres", "mysql", "sqld"],
);
