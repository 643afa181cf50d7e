import { createConnection } from "mysql2/promise";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { isLeftOut, type TestDatabase, testDatabase } from "../../../test/support/databases.js";
import { sized } from "../../../test/support/effort.js";
import { systemRuntime } from "../../runtime/system.js";
import { migrate, pendingMigrations } from "../sql/migrations.js";
import { Database } from "./database.js";
import { type Driver, loadDriver } from "./driver.js";
import { openMysql } from "./index.js";
import { migrationPort } from "./migrate.js";
import { migrations } from "./schema.js";

/** A driver whose connection is destroyed after the server has executed this many statements that match the pattern. */
function failingDriver(driver: Driver, pattern: RegExp, successfulStatements: number): Driver {
  let remaining = successfulStatements;
  return {
    escape: driver.escape,
    async createConnection(options) {
      const connection = await driver.createConnection(options);
      const query = connection.query.bind(connection);
      connection.query = async (text) => {
        const answer = await query(text);
        if (pattern.test(text) && remaining-- === 0) {
          connection.destroy();
          throw Object.assign(new Error("killed"), { fatal: true });
        }
        return answer;
      };
      return connection;
    },
  };
}

describe.skipIf(isLeftOut("mysql"))("migrating MySQL", () => {
  let database: TestDatabase;
  let driver: Driver;

  beforeAll(async () => {
    database = await testDatabase("mysql");
    driver = await loadDriver();
  });
  afterAll(() => database.drop());

  const asAdmin = async (statement: string) => {
    const connection = await createConnection({ uri: database.url, multipleStatements: true });
    const [rows] = await connection.query(statement);
    await connection.end();
    return rows as Record<string, unknown>[];
  };
  const databaseName = () => new URL(database.url).pathname.slice(1);
  const recreateDatabase = () =>
    asAdmin(`DROP DATABASE ${databaseName()}; CREATE DATABASE ${databaseName()} CHARACTER SET utf8mb4`);
  const readSchema = async () => [
    ...(await asAdmin(
      "SELECT table_name, index_name, column_name, seq_in_index FROM information_schema.statistics " +
        "WHERE table_schema = DATABASE() ORDER BY 1, 2, 4",
    )),
    ...(await asAdmin("SELECT table_name FROM information_schema.views WHERE table_schema = DATABASE()")),
    ...(await asAdmin(
      "SELECT routine_name, routine_definition FROM information_schema.routines WHERE routine_schema = DATABASE() ORDER BY 1",
    )),
  ];

  test("eight concurrent migrations create one set of tables and one record of each migration", async () => {
    await recreateDatabase();
    const stores = await Promise.all(Array.from({ length: 8 }, () => openMysql(database.url)));
    await Promise.all(stores.map((store) => store.migrate()));
    for (const store of stores) expect(await store.pendingMigrations()).toEqual([]);
    await Promise.all(stores.map((store) => store.close()));
    expect(await asAdmin("SELECT version FROM pawl_migrations")).toEqual(
      migrations.map(({ version }) => ({ version })),
    );
  });

  test("a migration that was killed after one of its statements is completed by the next process", async () => {
    const completeSchema = await readSchema();
    const count = migrations.reduce((sum, { statements }) => sum + statements.length + 2, 0);
    // Each database that is made again takes a second of the server on a busy machine. When nothing but the record of the migration is
    // missing, every statement is repeated on what it has made.
    const stride = sized(9, 1);
    const moments = Array.from({ length: count }, (_, n) => n).filter((n) => n % stride === 0 || n >= count - 2);
    for (const successfulStatements of moments) {
      await recreateDatabase();
      const failingDatabase = new Database(
        failingDriver(driver, /^(CREATE |DROP PROCEDURE |INSERT INTO pawl_migrations)/, successfulStatements),
        database.url,
        systemRuntime,
        undefined,
      );
      await expect(
        migrate(migrationPort(failingDatabase), migrations),
        `statement ${successfulStatements}`,
      ).rejects.toThrow();
      await failingDatabase.close();
      const db = new Database(driver, database.url, systemRuntime, undefined);
      const isRecorded = successfulStatements === count - 1;
      expect(await pendingMigrations(migrationPort(db), migrations)).toEqual(isRecorded ? [] : [1]);
      await migrate(migrationPort(db), migrations);
      expect(await pendingMigrations(migrationPort(db), migrations)).toEqual([]);
      await db.close();
      expect(await readSchema()).toEqual(completeSchema);
    }
  });

  test("a migration waits while another process migrates", async () => {
    await recreateDatabase();
    const other = await createConnection({ uri: database.url });
    const lock = "CONCAT('pawl:', SUBSTRING(SHA2(DATABASE(), 256), 1, 40))";
    await other.query(`SELECT GET_LOCK(${lock}, 1)`);
    const store = await openMysql(database.url);
    const migrating = store.migrate();
    const outcome = await Promise.race([migrating, new Promise((resolve) => setTimeout(resolve, 500, "waits"))]);
    expect(outcome).toBe("waits");
    await other.end();
    await migrating;
    await store.close();
  });
});
