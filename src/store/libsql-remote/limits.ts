/** Limits on a libSQL server: each step of a transaction is one request. */
import type { Fence, Hint } from "../contract/store.js";
import type { Dialect } from "../sql/dialect.js";
import type { SqlText, TransactionSteps } from "../sql/limits/dialect.js";
import { SqlLimits } from "../sql/limits/limits.js";
import { sqliteLimitsDialect } from "../sqlite/limits-dialect.js";
import type { RemoteDatabase } from "./database.js";
import type { Result, Statement, Value } from "./driver.js";
import { toStoreError } from "./errors.js";

const commit: Statement = { sql: "COMMIT", args: [] };
const beginStatement: Statement = { sql: "SELECT 1", args: [] };

export function createRemoteLimits(
  db: RemoteDatabase,
  dialect: Dialect,
  emitHints: (hints: readonly Hint[]) => void,
): SqlLimits {
  const port = {
    read: (statements: readonly SqlText[]) =>
      Promise.all(statements.map((statement) => db.read(toStatement(statement)))),
    write: async (statements: readonly SqlText[]) => rowsOf(await db.write(statements.map(toStatement))),
    transact: <R>(begin: () => TransactionSteps<R>) => takeSteps(db, begin()),
    underFence: <R>(_fence: Fence, work: () => Promise<R>) => work(),
    emitHints,
  };
  return new SqlLimits(port, sqliteLimitsDialect(dialect));
}

const toStatement = ({ text, values }: SqlText): Statement => ({ sql: text, args: values as readonly Value[] });
const rowsOf = (results: readonly Result[]) => results.map(({ rows }) => rows);

async function takeSteps<R>(db: RemoteDatabase, steps: TransactionSteps<R>): Promise<R> {
  const transaction = await db.begin(beginStatement);
  const run = async (statements: readonly Statement[]) =>
    statements.length === 0 ? [] : rowsOf(await transaction.withDeadline(transaction.transaction.batch(statements)));
  try {
    let step = steps.next();
    while (!step.done) step = steps.next(await run(step.value.map(toStatement)));
    const { writes, result } = step.value;
    return result(writes === null ? [] : await run([...writes.map(toStatement), commit]));
  } catch (error) {
    throw toStoreError(error, db.description);
  } finally {
    transaction.end();
  }
}
