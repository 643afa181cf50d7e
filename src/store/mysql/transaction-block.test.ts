/** Tests that a transaction aborted in the middle of a packet leaves nothing and executes no later statement. */

import { type Connection, createConnection } from "mysql2/promise";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { emptyDatabase, isLeftOut, type TestDatabase } from "../../../test/support/databases.js";
import { until } from "../../../test/support/waiting.js";
import { systemRuntime } from "../../runtime/system.js";
import { capabilitiesOf } from "./capabilities.js";
import { Database } from "./database.js";
import { type Driver, loadDriver } from "./driver.js";
import { createBlockSession, type Session } from "./session.js";
import { type Sql, sql } from "./sql.js";
import { begin, commit, rollback } from "./transaction-block.js";

describe("the capabilities of a server", () => {
  test("follow from its version", () => {
    for (const version of ["10.6.22-MariaDB", "10.11.19-MariaDB-0+deb12u1", "5.5.5-11.4.2-MariaDB-log"]) {
      expect(capabilitiesOf(version).hasBlocks).toBe(true);
    }
    for (const version of ["8.0.36", "8.4.0-commercial", "9.1.0"])
      expect(capabilitiesOf(version).hasBlocks).toBe(false);
  });
});

/** Makes the server report the version of a MySQL, so that the store uses no blocks. */
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
    database = await emptyDatabase("mysql");
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
  const readIds = async () =>
    ((await other.query("SELECT id FROM rows_written ORDER BY id"))[0] as { id: number }[]).map(({ id }) => id);

  /** Waits until another session has been executing a statement with this text for 100 ms, and returns its id. */
  const sessionThatRuns = async (text: string): Promise<number> => {
    let sessionId: number | undefined;
    await until(async () => {
      const [rows] = await other.query(
        "SELECT id FROM information_schema.processlist WHERE db = DATABASE() AND id <> CONNECTION_ID() AND info LIKE ? AND time_ms > 100",
        [`%${text}%`],
      );
      sessionId = (rows as { id: number }[])[0]?.id;
      return sessionId !== undefined;
    });
    return sessionId as number;
  };

  const forms = [
    { form: "in blocks", wrapDriver: (driver: Driver) => driver },
    { form: "statement by statement", wrapDriver: withoutBlocks },
  ];
  describe.each(forms)("$form", ({ wrapDriver }) => {
    let db: Database;
    const warnings: string[] = [];

    beforeAll(async () => {
      const driver = wrapDriver(await loadDriver());
      db = new Database(driver, database.url, systemRuntime, (message) => warnings.push(message));
    });
    afterAll(() => db.close());

    const runInOnePacket = (...statements: Sql[]) => db.transaction((transaction) => transaction.commit(statements));
    const runInTwoPackets = (first: Sql[], second: Sql[]) =>
      db.transaction(async (transaction) => {
        await transaction.run(first);
        await transaction.commit(second);
      });

    test("returns the rows of each SELECT, in order", async () => {
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

    test("stops at an error of a trigger, and writes nothing", async () => {
      const forbidden = sql("INSERT INTO forbidden VALUES (1)");
      await expect(runInOnePacket(insert(1), forbidden, insert(2))).rejects.toThrow("no");
      await expect(runInTwoPackets([insert(1), insert(2)], [insert(3), forbidden, insert(4)])).rejects.toThrow("no");
      expect(await readIds()).toEqual([]);
    });

    test("stops at a duplicate key, and writes nothing", async () => {
      await other.query("INSERT INTO rows_written VALUES (2)");
      await expect(runInOnePacket(insert(1), insert(2), insert(3))).rejects.toThrow(/Duplicate/);
      expect(await readIds()).toEqual([2]);
    });

    test("is retried as a whole after a lock wait timeout", async () => {
      await other.query("INSERT INTO rows_written VALUES (2)");
      const setShortTimeout = sql("SET innodb_lock_wait_timeout = 1");
      await other.query("START TRANSACTION");
      await other.query("DELETE FROM rows_written WHERE id = 2");
      warnings.length = 0;
      const writing = runInOnePacket(setShortTimeout, insert(1), insert(2), insert(3));
      await until(() => warnings.length > 0);
      await other.query("COMMIT");
      await writing;
      expect(await readIds()).toEqual([1, 2, 3]);
    });

    test("is retried as a whole when it is the victim of a deadlock", async () => {
      await other.query("INSERT INTO rows_written VALUES (1), (2)");
      const lock = (id: number) => sql("SELECT id FROM rows_written WHERE id = ? FOR UPDATE", [id]);
      await other.query("START TRANSACTION");
      // The server chooses the transaction with fewer changes as the victim.
      await other.query("INSERT INTO rows_written VALUES ?", [Array.from({ length: 1000 }, (_, n) => [1000 + n])]);
      await other.query("SELECT id FROM rows_written WHERE id = 2 FOR UPDATE");
      const writing = runInOnePacket(insert(10), lock(1), lock(2), insert(11));
      await sessionThatRuns("WHERE id = 2 FOR UPDATE");
      await other.query("SELECT id FROM rows_written WHERE id = 1 FOR UPDATE");
      await other.query("ROLLBACK");
      await writing;
      expect(await readIds()).toEqual([1, 2, 10, 11]);
    });

    test("stops when one of its statements is killed, and writes nothing", async () => {
      const writing = runInOnePacket(insert(1), sql("SELECT SLEEP(60) AS slept"), insert(2));
      const failed = expect(writing).rejects.toMatchObject({ transient: true });
      await other.query(`KILL QUERY ${await sessionThatRuns("SLEEP(60)")}`);
      await failed;
      expect(await readIds()).toEqual([]);
    });

    test("is written completely or not at all when its connection is killed in the middle", async () => {
      await other.query("INSERT INTO sleepers VALUES (60)");
      const writing = runInOnePacket(insert(1), sql("SELECT SLEEP(seconds) AS slept FROM sleepers"), insert(2));
      const outcome = writing.then(
        () => "committed",
        (error: unknown) => error,
      );
      const killed = await sessionThatRuns("SLEEP(seconds)");
      await other.query("DELETE FROM sleepers");
      await other.query(`KILL ${killed}`);
      // Statement by statement, it is known that COMMIT was not sent, so the transaction is retried.
      if ((await outcome) === "committed") expect(await readIds()).toEqual([1, 2]);
      else expect([await outcome, await readIds()]).toMatchObject([{ transient: true }, []]);
    });
  });

  // A MySQL server accepts no blocks, so these tests need MariaDB.
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
        allowsMultipleStatements: false,
      });
    });
    afterAll(() => connection.end());

    test("is rolled back by the server before the client gets the error", async () => {
      await expect(session.run([begin, insert(1), sql("INSERT INTO forbidden VALUES (1)")])).rejects.toThrow("no");
      const [rows] = await connection.query(
        "SELECT @@in_transaction AS open, (SELECT count(*) FROM rows_written) AS n",
      );
      expect(rows).toEqual([{ open: 0, n: 0 }]);
    });

    test("fails as a deadlock after the server has rolled it back between two packets", async () => {
      await session.run([begin, insert(1)]);
      await connection.query("ROLLBACK");
      await expect(session.run([insert(2), insert(3)])).rejects.toMatchObject({ errno: 1213 });
      await expect(session.run([insert(2)])).rejects.toMatchObject({ errno: 1213 });
      await expect(session.run([commit])).rejects.toMatchObject({ errno: 1213 });
      await session.run([rollback]);
      expect(await readIds()).toEqual([]);
    });
  });
});
