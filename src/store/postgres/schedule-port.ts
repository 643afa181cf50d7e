/** Transactions in which schedules change and their runs begin. */
import type { NewRun } from "../contract/store.js";
import type { SchedulePort, ScheduleTransaction } from "../sql/schedule-port.js";
import type { Committer } from "./commit/commit.js";
import type { Database } from "./connection/database.js";

export const createSchedulePort = (
  db: Database,
  committer: () => Committer,
  port: Pick<SchedulePort, "query" | "emitHints">,
): SchedulePort => ({
  ...port,
  async transaction(work) {
    let outcome: Awaited<ReturnType<typeof work>> | undefined;
    try {
      await db.transaction(async (execute) => {
        const transaction: ScheduleTransaction = {
          query: (text, values) => execute({ text, values }),
          start: async (runs: readonly NewRun[]) => (await committer().start(execute, runs)).refused,
        };
        outcome = undefined;
        outcome = await work(transaction);
        // An error has the transaction rolled back.
        if (!outcome.shouldCommit) throw new Error("The transaction is rolled back on purpose.");
      });
    } catch (error) {
      if (outcome?.shouldCommit !== false) throw error;
    }
    return (outcome as Awaited<ReturnType<typeof work>>).result;
  },
});
