/** Runs the store suite in memory, and with node:sqlite where Node has it. test/stores runs it on a file. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { sized } from "../../../test/support/effort.js";
import { storeSuite, type TransactionHarness } from "../../testing/store-suite/index.js";
import { loadDriver, type SqliteDatabase, type SqliteDriver } from "./driver.js";
import { openSqlite } from "./index.js";

/** As much as for other stores whose statements are those of SQLite on a file. */
const effort = sized(10, 100) / 100;
const runner = { afterAll, afterEach, beforeAll, describe, expect, test };

storeSuite({
  name: "sqlite in memory",
  runner,
  fresh: async () => {},
  open: (options) => openSqlite(":memory:", options),
  sharesAcrossInstances: false,
  notifiesAcrossInstances: false,
  hasMigrations: true,
  effort,
  dispose: async () => {},
});

const nodeSqlite = await loadDriver("node:sqlite").catch(() => undefined);

// Older versions of Node do not have node:sqlite.
if (nodeSqlite !== undefined) testNodeSqlite(nodeSqlite);

function testNodeSqlite({ Database }: SqliteDriver): void {
  const directory = mkdtempSync(join(tmpdir(), "pawl-node-sqlite-"));
  let databaseCount = 0;
  const file = () => join(directory, `${databaseCount}.db`);
  const withDatabase = <T>(work: (database: SqliteDatabase) => T): T => {
    const database = new Database(file());
    try {
      return work(database);
    } finally {
      database.close();
    }
  };
  const transactions: TransactionHarness = {
    write: async (handle, value) => void (handle as SqliteDatabase).prepare("INSERT INTO mine VALUES (?)").run(value),
    committedValues: async () =>
      withDatabase((db) => db.prepare("SELECT value FROM mine").all()).map((row) => row.value as string),
    beginCallerTransaction: async () => {
      const tx = new Database(file());
      tx.exec("BEGIN IMMEDIATE");
      const end = (sql: string) => async () => {
        tx.exec(sql);
        tx.close();
      };
      return { tx, commit: end("COMMIT"), rollback: end("ROLLBACK") };
    },
  };
  storeSuite({
    name: "node:sqlite",
    runner,
    fresh: async () => {
      databaseCount += 1;
      withDatabase((db) => db.exec("CREATE TABLE mine (value TEXT)"));
    },
    open: (options) => openSqlite(file(), { ...options, driver: "node:sqlite" }),
    sharesAcrossInstances: true,
    notifiesAcrossInstances: true,
    hasMigrations: true,
    effort,
    transactions,
    dispose: async () => rmSync(directory, { recursive: true, force: true }),
  });
}
