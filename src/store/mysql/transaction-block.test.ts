/** A transaction that is aborted in the middle of what is sent at once: nothing of it stays, nothing behind it is done. */

import { type Connection, createConnection } from "mysql2/promise";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { isLeftOut, type TestDatabase, testDatabase } from "../../../test/support/databases.js";
import { until } from "../../../test/support/waiting.js";
import { systemRuntime } from "../../runtime/system.js";
import { capabilitiesOf } from "./capabilities.js";
import { Database } from "./database.js";
import { type Driver, loadDriver } from "./driver.js";
import { createBlockSession, type Session } from "./session.js";
import { type Sql, sql } from "./sql.js";
import { begin, commit, rollback } from "./transaction-block.js";

describe("the capabilities of a server", () => {
  test("are told by its version", () => {
    for (const version of ["10.6.22-MariaDB", "10.11.19-MariaDB-0+deb12u1", "5.5.5-11.4.2-MariaDB-log"]) {
      expect(capabilitiesOf(version).hasBlocks).toBe(true);
    }
    for (const version of ["8.0.36", "8.4.0-commercial", "9.1.0"])
      expect(capabilitiesOf(version).hasBlocks).toBe(false);
  });
});

/** The same server, which calls itself a MySQL: statements are sent as to one that has no blocks. */
const withoutBlocks = (driver: Driver): Driver => ({
  escape: (value) => driver.escape(value),
  async createConnection(options) {
    const connection = await driver.createConnection(options);
    const query = connection.query.bind(connection);
    connection.query = (text) => query(text.replace("VERSION()", "'8.0.36'"));
    return connection;
  },
});

describe.skipIf(isLeftOut("mysql"))("a transaction that is sent in few packets", () => {
  let database: TestDatabase;
  let other: Connection;

  beforeAll(async () => {
    database = await testDatabase("mysql");
    other = await createConnection({ uri: database.url });
    await other.query("CREATE TABLE rows_written (id INT PRIMARY KEY) ENGINE=InnoDB");
    await other.query("CREATE TABLE sleepers (seconds INT) ENGINE=InnoDB");
    await other.query("CREATE TABLE forbidden (id INT PRIMARY KEY) ENGINE=InnoDB");
    await other.query(
      "CREATE TRIGGER refuse BEFORE INSERT ON forbidden FOR EACH ROW SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'no'",
    );
  });

  beforeEach(() => other.query("DELETE FROM rows_written"));

  afterAll(async () => {
    await other.end();
    await database.drop();
  });

  const insert = (id: number) => sql("INSERT INTO rows_written VALUES (?)", [id]);
  const ids = async () =>
    ((await other.query("SELECT id FROM rows_written ORDER BY id"))[0] as { id: number }[]).map(({ id }) => id);

  /** Waits until a statement of another session that has this text waits or sleeps, and returns that session. */
  const sessionThatRuns = async (text: string): Promise<number> => {
    let found: number | undefined;
    await until(async () => {
      const [rows] = await other.query(
        "SELECT id FROM information_schema.processlist WHERE db = DATABASE() AND id <> CONNECTION_ID() AND info LIKE ? AND time_ms > 100",
        [`%${text}%`],
      );
      found = (rows as { id: number }[])[0]?.id;
      return found !== undefined;
    });
    return found as number;
  };

  const forms = [
    { form: "in blocks", disguise: (driver: Driver) => driver },
    { form: "statement by statement", disguise: withoutBlocks },
  ];
  describe.each(forms)("$form", ({ disguise }) => {
    let db: Database;
    const told: string[] = [];

    beforeAll(async () => {
      db = new Database(disguise(await loadDriver()), database.url, systemRuntime, (what) => told.push(what));
    });
    afterAll(() => db.close());

    const atOnce = (...statements: Sql[]) => db.transaction((transaction) => transaction.commit(statements));
    const inTwoPackets = (first: Sql[], second: Sql[]) =>
      db.transaction(async (transaction) => {
        await transaction.run(first);
        await transaction.commit(second);
      });

    test("answers each SELECT with its rows, in order", async () => {
      const [one, , none, two] = await db.transaction((transaction) =>
        transaction.commit([
          sql("SELECT 1 AS n"),
          insert(1),
          sql("SELECT 1 FROM rows_written WHERE id = 7"),
          sql("SELECT id FROM rows_written"),
        ]),
      );
      expect([one?.rows, none?.rows, two?.rows]).toEqual([[{ n: 1 }], [], [{ id: 1 }]]);
    });

    test("ends at an error of a trigger, and leaves nothing", async () => {
      const forbidden = sql("INSERT INTO forbidden VALUES (1)");
      await expect(atOnce(insert(1), forbidden, insert(2))).rejects.toThrow("no");
      await expect(inTwoPackets([insert(1), insert(2)], [insert(3), forbidden, insert(4)])).rejects.toThrow("no");
      expect(await ids()).toEqual([]);
    });

    test("ends at a duplicate key, and leaves nothing", async () => {
      await other.query("INSERT INTO rows_written VALUES (2)");
      await expect(atOnce(insert(1), insert(2), insert(3))).rejects.toThrow(/Duplicate/);
      expect(await ids()).toEqual([2]);
    });

    test("ends when a lock is not to be had in time, and is tried again as a whole", async () => {
      await other.query("INSERT INTO rows_written VALUES (2)");
      const impatient = sql("SET innodb_lock_wait_timeout = 1");
      await other.query("START TRANSACTION");
      await other.query("DELETE FROM rows_written WHERE id = 2");
      told.length = 0;
      const writing = atOnce(impatient, insert(1), insert(2), insert(3));
      await until(() => told.length > 0);
      await other.query("COMMIT");
      await writing;
      expect(await ids()).toEqual([1, 2, 3]);
    });

    test("ends as the victim of a deadlock, and is tried again as a whole", async () => {
      await other.query("INSERT INTO rows_written VALUES (1), (2)");
      const lock = (id: number) => sql("SELECT id FROM rows_written WHERE id = ? FOR UPDATE", [id]);
      await other.query("START TRANSACTION");
      // The heavier transaction survives.
      await other.query("INSERT INTO rows_written VALUES ?", [Array.from({ length: 1000 }, (_, n) => [1000 + n])]);
      await other.query("SELECT id FROM rows_written WHERE id = 2 FOR UPDATE");
      const writing = atOnce(insert(10), lock(1), lock(2), insert(11));
      await sessionThatRuns("WHERE id = 2 FOR UPDATE");
      await other.query("SELECT id FROM rows_written WHERE id = 1 FOR UPDATE");
      await other.query("ROLLBACK");
      await writing;
      expect(await ids()).toEqual([1, 2, 10, 11]);
    });

    test("ends when its statement is killed in the middle, and leaves nothing", async () => {
      const writing = atOnce(insert(1), sql("SELECT SLEEP(60) AS slept"), insert(2));
      const failed = expect(writing).rejects.toMatchObject({ transient: true });
      await other.query(`KILL QUERY ${await sessionThatRuns("SLEEP(60)")}`);
      await failed;
      expect(await ids()).toEqual([]);
    });

    test("is there as a whole or not at all when its connection is killed in the middle", async () => {
      await other.query("INSERT INTO sleepers VALUES (60)");
      const writing = atOnce(insert(1), sql("SELECT SLEEP(seconds) AS slept FROM sleepers"), insert(2));
      const outcome = writing.then(
        () => "committed",
        (error: unknown) => error,
      );
      const killed = await sessionThatRuns("SLEEP(seconds)");
      await other.query("DELETE FROM sleepers");
      await other.query(`KILL ${killed}`);
      // One by one it is known that COMMIT was not sent, so that everything can be sent again.
      if ((await outcome) === "committed") expect(await ids()).toEqual([1, 2]);
      else expect([await outcome, await ids()]).toMatchObject([{ transient: true }, []]);
    });
  });

  // A MySQL server refuses every block, so there is nothing of it to be tested there.
  describe("in blocks", () => {
    let connection: Connection;
    let session: Session;

    beforeAll(async () => {
      connection = await createConnection({ uri: database.url });
      const quote = (value: string) => connection.escape(value);
      session = createBlockSession((text) => connection.query(text), {
        quote,
        maxPacket: 1_000_000,
        hasBlocks: true,
        mayJoin: false,
      });
    });
    afterAll(() => connection.end());

    test("is rolled back by the server itself before the client hears of the error", async () => {
      await expect(session.run([begin, insert(1), sql("INSERT INTO forbidden VALUES (1)")])).rejects.toThrow("no");
      const [rows] = await connection.query(
        "SELECT @@in_transaction AS open, (SELECT count(*) FROM rows_written) AS n",
      );
      expect(rows).toEqual([{ open: 0, n: 0 }]);
    });

    test("is not continued after the server has rolled it back between two packets", async () => {
      await session.run([begin, insert(1)]);
      await connection.query("ROLLBACK");
      await expect(session.run([insert(2), insert(3)])).rejects.toMatchObject({ errno: 1213 });
      await expect(session.run([insert(2)])).rejects.toMatchObject({ errno: 1213 });
      await expect(session.run([commit])).rejects.toMatchObject({ errno: 1213 });
      await session.run([rollback]);
      expect(await ids()).toEqual([]);
    });
  });
});
