/** Errors of the database, and of a worker's access to it. */

import { causeOf, nameErrors, PawlError } from "./pawl-error.js";

/**
 * The database could not execute a call, because it is unreachable or rejected a statement; `cause` is the driver's error.
 * When `transient` is true, make the call again.
 */
export class StoreError extends PawlError {
  readonly code = "STORE_ERROR";
  /** Whether the same call may succeed when it is repeated (a lost connection, a deadlock). */
  readonly transient: boolean;
  /** Whether the server could not be reached, or the connection to it was lost. */
  readonly unreachable: boolean;

  constructor(message: string, options: ErrorOptions & { transient: boolean; unreachable?: boolean }) {
    super(message, causeOf(options));
    this.transient = options.transient;
    this.unreachable = options.unreachable ?? false;
  }
}

/**
 * Thrown in a transactional step (`ctx.transaction`): `tx` was used after the step had ended, the step tried to commit or
 * roll back by itself, or a failed statement has ended the transaction. The step's result was
 * not recorded.
 */
export class TransactionError extends PawlError {
  readonly code = "TRANSACTION_ERROR";
}

/**
 * Internal: a write was rejected because the worker's lease expired and other workers may own its runs. The worker drops
 * its runs and registers under a new epoch. User code never gets this error.
 */
export class FencedError extends PawlError {
  readonly code = "FENCED";
  /** The worker whose write was rejected. */
  readonly workerId: string;
  /** The epoch that is no longer valid. */
  readonly epoch: number;

  constructor(workerId: string, epoch: number) {
    super(
      `Worker ${workerId} lost its lease (epoch ${epoch}): other workers have taken its runs, so its write was refused. ` +
        "It drops these runs and continues under a new epoch.",
    );
    this.workerId = workerId;
    this.epoch = epoch;
  }
}

/**
 * Thrown by `connect()` when the tables do not have the version that this version of Pawl needs, and were not migrated to
 * it. The message says whether to migrate, to repeat a failed migration, or to update Pawl.
 */
export class MigrationError extends PawlError {
  readonly code = "MIGRATION_ERROR";
}

nameErrors({ StoreError, TransactionError, FencedError, MigrationError });
