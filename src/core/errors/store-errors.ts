/** The database did not do what was asked. */

import { causeOf, nameErrors, PawlError } from "./pawl-error.js";

/** The database did not do what was asked. */
export class StoreError extends PawlError {
  readonly code = "STORE_ERROR";
  /** Whether the same call may work when it is made again (a lost connection, a deadlock). */
  readonly transient: boolean;
  /** Whether that is because the server could not be reached, or the connection to it was lost. */
  readonly unreachable: boolean;

  constructor(message: string, options: ErrorOptions & { transient: boolean; unreachable?: boolean }) {
    super(message, causeOf(options));
    this.transient = options.transient;
    this.unreachable = options.unreachable ?? false;
  }
}

/**
 * The transaction of a step (`ctx.transaction`) cannot be used, or its step not be recorded: `tx` was used after its end, or
 * the step tried to end it itself, or a statement that failed has ended it. Nothing of the step was recorded.
 */
export class TransactionError extends PawlError {
  readonly code = "TRANSACTION_ERROR";
}

/** Internal: this worker was taken for dead, its runs belong to others now, and its write was refused. */
export class FencedError extends PawlError {
  readonly code = "FENCED";
  readonly workerId: string;
  readonly epoch: number;

  constructor(workerId: string, epoch: number) {
    super(
      `Worker ${workerId} lost its lease (epoch ${epoch}): others took its runs, so its write was refused. ` +
        "It drops what it held and goes on under a new epoch.",
    );
    this.workerId = workerId;
    this.epoch = epoch;
  }
}

/** The tables could not be brought to the version this Pawl needs. */
export class MigrationError extends PawlError {
  readonly code = "MIGRATION_ERROR";
}

nameErrors({ StoreError, TransactionError, FencedError, MigrationError });
