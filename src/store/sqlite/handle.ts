/**
 * The `tx` of a transactional step: the driver's own `prepare` and `exec`, and an asynchronous `query`. The
 * transaction's guard checks every call first. Prepared statements are guarded too, because user code could use them
 * after the transaction has ended.
 */

import type { TransactionGuard } from "../shared/transaction-guard.js";
import type { SqlRow } from "../sql/dialect.js";
import type { Connection } from "./connection.js";
import { isInTransaction, type SqliteStatement } from "./driver.js";

/** The `tx` of a transactional step on SQLite. */
export interface SqliteHandle {
  /** Prepares a statement, as the driver does. It can be used until the step ends. */
  prepare(sql: string): SqliteStatement;
  /** Executes one or several statements without values. */
  exec(sql: string): void;
  /** Executes one statement and resolves with its rows, as the handles of all SQL stores do. */
  query(sql: string, values?: readonly unknown[]): Promise<readonly SqlRow[]>;
}

type Method = (...args: unknown[]) => unknown;

export function createGuardedHandle(db: Connection, guard: TransactionGuard): SqliteHandle {
  /**
   * SQLite rolls the whole transaction back when a constraint or a trigger says so (ON CONFLICT ROLLBACK,
   * RAISE(ROLLBACK)), or when the disk is full. Statements after that would each commit by themselves, so the guard
   * refuses them.
   */
  const runGuarded = <T>(work: () => T): T => {
    guard.assertUsable();
    try {
      return work();
    } catch (error) {
      if (isInTransaction(db.database)) throw error;
      throw guard.markBroken(
        "A statement of this step failed, and SQLite has rolled its whole transaction back.",
        error,
      );
    }
  };

  const assertAllowed = (sql: string) => guard.assertAllowed(String(sql));

  const guardedStatement = (statement: SqliteStatement): SqliteStatement => {
    // The proxy's target is not the statement itself: a proxy must report read-only properties of its target unchanged.
    const proxy: SqliteStatement = new Proxy(Object.create(statement) as SqliteStatement, {
      get(_target, name) {
        // better-sqlite3 exposes the database as this property, and the database's methods would bypass the guard.
        if (name === "database") return undefined;
        const value: unknown = Reflect.get(statement, name, statement);
        if (typeof value !== "function") return value;
        return (...args: unknown[]) => {
          const result = runGuarded(() => (value as Method).apply(statement, args));
          if (result === statement) return proxy;
          return name === "iterate" ? guardedIterator(result as Iterator<unknown>) : result;
        };
      },
    });
    return proxy;
  };

  /**
   * While an iterator is open the connection refuses all statements, even ROLLBACK, so the guard closes the iterator at
   * the end.
   */
  function* guardedIterator(rows: Iterator<unknown>): Generator<unknown> {
    guard.closeAtEnd(() => void rows.return?.());
    try {
      for (;;) {
        const { done, value } = runGuarded(() => rows.next());
        if (done) return;
        yield value;
      }
    } finally {
      rows.return?.();
    }
  }

  return {
    prepare: (sql) => {
      assertAllowed(sql);
      return guardedStatement(runGuarded(() => db.database.prepare(sql)));
    },
    exec: (sql) => {
      assertAllowed(sql);
      runGuarded(() => db.database.exec(sql));
    },
    query: async (sql, values) => {
      assertAllowed(sql);
      return runGuarded(() => db.query(sql, values));
    },
  };
}
