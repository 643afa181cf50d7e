/** Limits in the SQLite store: the steps of a transaction are taken at once, because nothing waits for an answer. */
import type { Fence, Hint } from "../contract/store.js";
import type { Dialect, SqlRow } from "../sql/dialect.js";
import type { SqlText, TransactionSteps } from "../sql/limits/dialect.js";
import { SqlLimits } from "../sql/limits/limits.js";
import type { Connection } from "./connection.js";
import type { ConnectionAccess } from "./connection-access.js";
import { sqliteLimitsDialect } from "./limits-dialect.js";

export function createSqliteLimits(
  access: ConnectionAccess,
  dialect: Dialect,
  emitHints: (hints: readonly Hint[]) => void,
): SqlLimits {
  const port = {
    read: (statements: readonly SqlText[]) => access.read((db) => runAll(db, statements)),
    write: (statements: readonly SqlText[]) => access.write((db) => runAll(db, statements)),
    transact: async <R>(begin: () => TransactionSteps<R>) => {
      const outcome = await access.write(
        (db) => takeSteps(db, begin()),
        ({ isCommitted }) => isCommitted,
      );
      return outcome.result;
    },
    underFence: <R>(_fence: Fence, work: () => Promise<R>) => work(),
    emitHints,
  };
  return new SqlLimits(port, sqliteLimitsDialect(dialect));
}

const runAll = (db: Connection, statements: readonly SqlText[]): readonly (readonly SqlRow[])[] =>
  statements.map(({ text, values }) => db.query(text, values));

function takeSteps<R>(
  db: Connection,
  steps: TransactionSteps<R>,
): { readonly isCommitted: boolean; readonly result: R } {
  let step = steps.next();
  while (!step.done) step = steps.next(runAll(db, step.value));
  const { writes, result } = step.value;
  return { isCommitted: writes !== null, result: result(runAll(db, writes ?? [])) };
}
