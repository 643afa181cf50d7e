/** Transactions in which schedules change and their runs begin. */
import type { SchedulePort, ScheduleTransaction } from "../sql/schedule-port.js";
import type { Database } from "./database.js";
import { sql, type Value } from "./sql.js";
import { createRuns } from "./transactions.js";

export const createSchedulePort = (
  db: Database,
  now: () => string,
  emitHints: SchedulePort["emitHints"],
): SchedulePort => ({
  query: (text, values) => db.query(text, values),
  emitHints,
  transaction: (work) =>
    db.transaction(async (session) => {
      const query: ScheduleTransaction["query"] = async (text, values) =>
        (await session.run([sql(text, values as readonly Value[])]))[0]?.rows ?? [];
      const start: ScheduleTransaction["start"] = async (runs) => {
        const [clock] = await query(`SELECT ${now()} AS at`, []);
        return createRuns(session, runs, Number(clock?.at));
      };
      const { shouldCommit, result } = await work({ query, start });
      if (shouldCommit) await session.commit([]);
      else await session.rollback();
      return result;
    }),
});
