/** Transactions in which schedules change and their runs begin. */
import type { NewRun } from "../contract/store.js";
import type { SchedulePort, ScheduleTransaction } from "../sql/schedule-port.js";
import type { Committer } from "./commit/commit.js";
import type { Database } from "./connection/database.js";

/** Thrown inside a transaction to have it rolled back. */
const rollBack = new Error("The transaction is rolled back on purpose.");

export const createSchedulePort = (
  db: Database,
  committer: () => Committer,
  port: Pick<SchedulePort, "query" | "emitHints">,
): SchedulePort => ({
  ...port,
  async transaction(work) {
    let result: Awaited<ReturnType<typeof work>>["result"] | undefined;
    try {
      await db.transaction(async (execute) => {
        const transaction: ScheduleTransaction = {
          query: (text, values) => execute({ text, values }),
          start: async (runs: readonly NewRun[]) => (await committer().start(execute, runs)).refused,
        };
        const outcome = await work(transaction);
        result = outcome.result;
        if (!outcome.shouldCommit) throw rollBack;
      });
    } catch (error) {
      if (error !== rollBack) throw error;
    }
    return result as Awaited<ReturnType<typeof work>>["result"];
  },
});
