/** Runs the conformance suite against a store on databases of its own, and checks that no connection stays open. */
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { storeSuite } from "../../src/testing/store-suite/index.js";
import {
  type AnyStoreKind,
  emptyDatabase,
  forEachStore,
  openStore,
  type TestDatabase,
  testDatabase,
} from "../support/databases.js";
import { sized } from "../support/effort.js";
import { libsqlTable, mysqlTable, postgresTable, sqldTable, sqliteTable } from "../support/user-table.js";

const userTables = {
  sqlite: sqliteTable,
  libsql: libsqlTable,
  sqld: sqldTable,
  postgres: postgresTable,
  mysql: mysqlTable,
};

/** A server notices a closed connection a little later than its client. */
const maxWaitMs = 3_000;

interface ConformanceOptions {
  readonly notifiesAcrossInstances: boolean;
  /** Listens on the server itself, past the pooler in front of the database. */
  readonly direct?: boolean;
}

export function testConformance(
  kind: Exclude<AnyStoreKind, "memory">,
  { notifiesAcrossInstances, direct = false }: ConformanceOptions,
): void {
  let current: TestDatabase | undefined;
  const url = () => {
    if (current === undefined) throw new Error("There is no database yet.");
    return current.url;
  };
  const userTable = userTables[kind](url);
  /** Both kinds of libSQL execute the statements of SQLite, and behind a pooler are those of PostgreSQL. */
  const hasStatementsOfAnother = kind === "libsql" || kind === "sqld" || direct;
  /**
   * The first topic, opening, and its test of migrations need a database without tables. To make the tables again for each of the
   * other topics takes a server longer than their tests.
   */
  let emptyDatabases = 2;

  async function drop(): Promise<void> {
    if (current === undefined) return;
    const left = await openConnections(current);
    // With its tables as a migration made them, a database of a server is only emptied and given to a later test.
    await userTable.drop();
    await current.drop();
    current = undefined;
    if (left > 0) throw new Error(`${left} connections were left open after close().`);
  }

  forEachStore(
    () =>
      storeSuite({
        name: kind,
        runner: { afterAll, afterEach, beforeAll, describe, expect, test },
        fresh: async () => {
          await drop();
          current = await (emptyDatabases > 0 ? emptyDatabase : testDatabase)(kind);
          emptyDatabases -= 1;
          await userTable.create();
        },
        open: (options) => openStore(kind, url(), { ...(direct ? current?.direct : {}), ...options }),
        sharesAcrossInstances: true,
        notifiesAcrossInstances,
        hasMigrations: true,
        transactions: userTable,
        effort: sized(hasStatementsOfAnother ? 10 : 25, 100) / 100,
        dispose: drop,
      }),
    [kind],
  );
}

async function openConnections(database: TestDatabase): Promise<number> {
  const deadline = performance.now() + maxWaitMs;
  for (;;) {
    const count = await database.connections();
    if (count === 0 || performance.now() > deadline) return count;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
