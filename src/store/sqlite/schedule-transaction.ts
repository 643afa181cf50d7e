/** Transactions in which schedules change and their runs begin. */
import type { ScheduleWork } from "../sql/schedule-port.js";
import type { ConnectionAccess } from "./connection-access.js";
import { toStoreError } from "./errors.js";
import { startRuns } from "./starts.js";

export async function runScheduleTransaction<T>(
  access: ConnectionAccess,
  clock: () => number,
  work: ScheduleWork<T>,
): Promise<T> {
  const { db, releaseWriteLock } = await access.begin();
  try {
    const { shouldCommit, result } = await work({
      query: async (text, values) => db.query(text, values),
      start: async (runs) => startRuns(db, runs, null, clock()),
    });
    db.run(shouldCommit ? "COMMIT" : "ROLLBACK");
    return result;
  } catch (error) {
    db.rollBack();
    throw toStoreError(error, access.location.description);
  } finally {
    releaseWriteLock();
  }
}
