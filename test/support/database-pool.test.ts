/** What one test has left in a database must not reach the next one. */
import { expect, onTestFinished, test } from "vitest";
import { forEachStore, openStore, testDatabase } from "./databases.js";
import { rawSql } from "./raw-sql.js";

forEachStore(
  (kind) => {
    const migrated = async () => {
      const database = await testDatabase(kind);
      onTestFinished(() => database.drop());
      return database;
    };
    const run = async (url: string, statement: string) => {
      const sql = await rawSql(url);
      await sql.query(statement).finally(() => sql.close());
    };

    test.each([
      ["a newer migration", "INSERT INTO pawl_migrations (version, name, at) VALUES (7, 'later', 1)"],
      ["no migration", "DELETE FROM pawl_migrations"],
      ["no table of the migrations", "DROP TABLE pawl_migrations"],
      ["a table of its own", "CREATE TABLE left_over (id int)"],
      ["another column", "ALTER TABLE pawl_cursors ADD COLUMN extra int"],
    ])("a test that leaves %s in a database does not hand it on", async (_what, statement) => {
      const database = await migrated();
      await run(database.url, statement);
      await database.drop();
      // The next database of the pool may be another one.
      for (let taken = 0; taken < 3; taken += 1) {
        const { url } = await migrated();
        const store = await openStore(kind, url);
        expect(await store.pendingMigrations()).toEqual([]);
        await store.close();
        await expect(run(url, "SELECT * FROM left_over")).rejects.toThrow(/left_over/);
      }
    });
  },
  ["postgres", "mysql"],
);
