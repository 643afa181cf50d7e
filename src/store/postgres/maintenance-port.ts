/** How the maintenance of the PostgreSQL store reaches the database. */
import type { Hint } from "../contract/store.js";
import type { MaintenancePort } from "../sql/maintenance.js";
import type { Database } from "./connection/database.js";
import type { OperationTracker } from "./operation-tracker.js";

/** Executing a maintenance query twice does no harm, so each is retried like a read. */
export const createMaintenancePort = (
  db: Database,
  operations: OperationTracker,
  emitHints: (hints: readonly Hint[]) => void,
): MaintenancePort => ({
  query: (text, values) => operations.run(() => db.read({ text, values })),
  writeAtomically: (writes) =>
    operations.run(() =>
      db.transaction(async (execute) => {
        for (const write of writes) await execute(write);
      }),
    ),
  emitHints,
});
