import { connect, type Pawl } from "pawl";
import { afterAll, beforeAll, expect, test } from "vitest";
import { emptyDatabase, forEachStore, type TestDatabase } from "../../test/support/databases.js";
import { type RawSql, rawSql } from "../../test/support/raw-sql.js";
import { silent } from "../../test/support/virtual-worlds.js";
import { order } from "../http-node/order.js";
import { type Output, runPython } from "./harness.js";

forEachStore(
  (kind) => {
    let database: TestDatabase;
    let pawl: Pawl;
    let sql: RawSql;

    beforeAll(async () => {
      database = await emptyDatabase(kind);
      pawl = await connect(database.url, { logger: silent });
      await pawl.worker({ workflows: [order], lease: "1 minute" }).start();
      sql = await rawSql(database.url);
      await sql.query("CREATE TABLE orders (id INTEGER PRIMARY KEY, sku VARCHAR(20) NOT NULL)");
    });
    afterAll(async () => {
      await sql.close();
      await pawl.close();
      await database.drop();
    });

    const start = (...args: string[]): Promise<Output> =>
      runPython("sql_start.py", args, { DATABASE_URL: database.url });
    const skuOf = async (id: number) =>
      (await sql.query(`SELECT sku FROM orders WHERE id = ${id}`)).map(({ sku }) => sku);

    test("a run that was started in a committed transaction completes on a worker", async () => {
      const { stdout, stderr } = await start("42", "Ä'\\1", "commit");
      expect(stderr).toBe("");
      const id = stdout.trim();
      expect(await skuOf(42)).toEqual(["Ä'\\1"]);
      const run = pawl.run(id);
      await run.signal("approved", { by: "finance" });
      expect(await run.result()).toEqual({ shelf: "shelf of Ä'\\1", approvedBy: "finance" });
      expect(await run.get()).toMatchObject({ input: { sku: "Ä'\\1" }, idempotencyKey: "order-42" });
    });

    test("a transaction that is rolled back leaves neither the order nor a run", async () => {
      const { code, stdout } = await start("43", "A-1", "rollback");
      expect([code, stdout]).toEqual([0, expect.stringMatching(/^[0-9a-f-]{36}\n$/)]);
      expect(await skuOf(43)).toEqual([]);
      expect((await pawl.runs({ idempotencyKey: "order-43" })).runs).toEqual([]);
    });

    test("an order that is refused has no run", async () => {
      const { code, stderr } = await start("44", "longer than twenty characters", "commit");
      expect([code, stderr]).toEqual([1, expect.stringMatching(/too long/)]);
      expect((await pawl.runs({ idempotencyKey: "order-44" })).runs).toEqual([]);
    });

    test("a run that is refused has no order", async () => {
      await pawl.workflow("order").trigger({ sku: "other" }, { idempotencyKey: "order-45" });
      const { code, stderr } = await start("45", "A-1", "commit");
      expect([code, stderr]).toEqual([1, expect.stringContaining("order-45")]);
      expect(await skuOf(45)).toEqual([]);
    });
  },
  ["postgres", "mysql"],
);
