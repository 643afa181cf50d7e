/**
 * What a transactional step gets as `tx`: the driver's own `prepare` and `exec`, and an asynchronous `query`, under the
 * guard of its transaction. So are the statements that it prepares: they would outlive the transaction, too.
 */

import type { TransactionGuard } from "../shared/transaction-guard.js";
import type { SqlRow } from "../sql/dialect.js";
import type { Connection } from "./connection.js";
import { isInTransaction, type SqliteStatement } from "./driver.js";

export interface SqliteHandle {
  prepare(sql: string): SqliteStatement;
  exec(sql: string): void;
  query(sql: string, values?: readonly unknown[]): Promise<readonly SqlRow[]>;
}

type Method = (...args: unknown[]) => unknown;

export function createGuardedHandle(db: Connection, guard: TransactionGuard): SqliteHandle {
  /**
   * SQLite rolls the whole transaction back when a constraint or a trigger says so (ON CONFLICT ROLLBACK, RAISE(ROLLBACK)), or
   * when the disk is full. What comes after that would commit by itself.
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

  const admit = (sql: string) => guard.assertAllowed(String(sql));

  const guardedStatement = (statement: SqliteStatement): SqliteStatement => {
    // Not of the statement itself, whose properties may not be told otherwise than they are.
    const proxy: SqliteStatement = new Proxy(Object.create(statement) as SqliteStatement, {
      get(_target, name) {
        // The database beneath would go past the guard.
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

  /** While one is open the connection does nothing else, not even roll back: the end of the transaction closes it. */
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
      admit(sql);
      return guardedStatement(runGuarded(() => db.database.prepare(sql)));
    },
    exec: (sql) => {
      admit(sql);
      runGuarded(() => db.database.exec(sql));
    },
    query: async (sql, values) => {
      admit(sql);
      return runGuarded(() => db.query(sql, values));
    },
  };
}
