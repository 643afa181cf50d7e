/** Transactions in which schedules change and their runs begin. */
import type { Queryable } from "../sql/dialect.js";
import type { ScheduleWork } from "../sql/schedule-port.js";
import { startRunsAsync } from "../sqlite/starts.js";
import type { RemoteDatabase } from "./database.js";
import type { Statement, Value } from "./driver.js";
import { toStoreError } from "./errors.js";
import { toSendable } from "./request-size.js";

/** The server begins a transaction with its first statement. */
const firstStatement: Statement = { sql: "SELECT 1", args: [] };
const commit: Statement = { sql: "COMMIT", args: [] };

export async function runScheduleTransaction<T>(
  db: RemoteDatabase,
  clock: () => number,
  work: ScheduleWork<T>,
): Promise<T> {
  const server = await db.begin(firstStatement);
  try {
    const query: Queryable["query"] = async (sql, values) =>
      (
        await server.withDeadline(
          server.transaction.execute({ sql, args: (values as readonly Value[]).map(toSendable) }),
        )
      ).rows;
    const start = (runs: Parameters<typeof startRunsAsync>[1]) => startRunsAsync({ query }, runs, clock());
    const { shouldCommit, result } = await work({ query, start });
    if (shouldCommit) await server.withDeadline(server.transaction.batch([commit]));
    return result;
  } catch (error) {
    throw toStoreError(error, db.description);
  } finally {
    // The server rolls a transaction back that has not been committed.
    server.end();
  }
}
