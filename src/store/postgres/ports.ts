/** What the shared SQL of maintenance and schedules gets of this store. */
import type { Hint, NewRun } from "../contract/store.js";
import type { Dialect } from "../sql/dialect.js";
import { SqlGatherings } from "../sql/gatherings.js";
import type { MaintenancePort } from "../sql/maintenance.js";
import type { SchedulePort, ScheduleTransaction } from "../sql/schedule-port.js";
import { SqlSchedules } from "../sql/schedules.js";
import type { Committer } from "./commit/commit.js";
import type { Database } from "./connection/database.js";
import { postgresLimitsDialect } from "./limits.js";
import type { OperationTracker } from "./operation-tracker.js";
import type { Tables } from "./tables.js";

export interface PortServices {
  readonly db: Database;
  /** Closing the store waits for its operations. */
  readonly operations: OperationTracker;
  committer(): Committer;
  emitHints(hints: readonly Hint[]): void;
}

/** Executing a maintenance query twice does no harm, so each is retried like a read. */
export const createMaintenancePort = ({ db, operations, emitHints }: PortServices): MaintenancePort => ({
  query: (text, values) => operations.run(() => db.read({ text, values })),
  writeAtomically: (writes) =>
    operations.run(() =>
      db.transaction(async (execute) => {
        for (const write of writes) await execute(write);
      }),
    ),
  emitHints,
});

const createSchedulePort = (services: PortServices): SchedulePort => ({
  query: (text, values) => services.operations.run(() => services.db.read({ text, values })),
  emitHints: services.emitHints,
  transaction: (work) => services.operations.run(() => runScheduleTransaction(services, work)),
});

/** Schedules and gathered starts are written in the same way: in a transaction in which runs begin. */
export function createSchedules(services: PortServices, tables: Tables, dialect: Dialect) {
  const port = createSchedulePort(services);
  const gatherings = new SqlGatherings(port, postgresLimitsDialect(tables, dialect));
  return { schedules: new SqlSchedules(port, dialect), gatherings };
}

/** A transaction in which schedules change and their runs begin. */
async function runScheduleTransaction<T>(
  { db, committer }: PortServices,
  work: (transaction: ScheduleTransaction) => Promise<{ readonly shouldCommit: boolean; readonly result: T }>,
): Promise<T> {
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
}
