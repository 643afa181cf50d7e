/**
 * Guards the connection of a transactional step against the user's code. The driver's own handle would outlive the
 * transaction: a write through that handle after the step has timed out would be committed on its own, and the step's
 * next attempt would write again.
 */
import { TransactionError } from "../../core/errors/errors.js";
import type { SqlSyntax } from "../sql/lexer.js";
import { findTransactionControl } from "../sql/transaction-control.js";

const endedMessage =
  "This transaction has ended, so its `tx` cannot be used any more: await everything that a transactional step does before it returns.";

/** The state of a transaction's handle. The wrapper of each driver calls the guard before it forwards a call. */
export class TransactionGuard {
  readonly #syntax: SqlSyntax;
  readonly #closeCallbacks = new Set<() => void>();
  #hasEnded = false;
  #failure: TransactionError | null = null;
  #runningCalls = 0;

  constructor(syntax: SqlSyntax) {
    this.#syntax = syntax;
  }

  /**
   * Throws unless this SQL may be sent. A step that tries to end its transaction is not recorded, even if it catches
   * the error.
   */
  assertAllowed(sql: string): void {
    this.assertUsable();
    const control = findTransactionControl(sql, this.#syntax);
    if (control === null) return;
    throw this.markBroken(
      `${control} is not allowed in a transactional step: Pawl commits its transaction together with the step's record. Use savepoints, or throw to roll back.`,
    );
  }

  /** Throws when the transaction has ended or can only be rolled back. */
  assertUsable(): void {
    if (this.#hasEnded) throw new TransactionError(endedMessage);
    this.assertNotBroken();
  }

  /** Throws when the transaction can only be rolled back, so that the step must not be recorded. */
  assertNotBroken(): void {
    if (this.#failure !== null) throw this.#failure;
  }

  /** From now on the transaction can only be rolled back. */
  markBroken(message: string, cause?: unknown): TransactionError {
    this.#failure ??= new TransactionError(message, cause === undefined ? {} : { cause });
    return this.#failure;
  }

  /** Counts the call as running until it settles. */
  async track<T>(call: Promise<T>): Promise<T> {
    const endCall = this.beginCall();
    try {
      return await call;
    } finally {
      endCall();
    }
  }

  /** Counts a call that has no promise as running until the returned function is called. */
  beginCall(): () => void {
    let isRunning = true;
    this.#runningCalls += 1;
    return () => {
      if (isRunning) this.#runningCalls -= 1;
      isRunning = false;
    };
  }

  /** Whether a call of the user's code is running, so that the connection must not be used for anything else. */
  get isBusy(): boolean {
    return this.#runningCalls > 0;
  }

  /**
   * Registers something that is open on the connection, such as an iterator, to be closed when the transaction ends.
   */
  closeAtEnd(close: () => void): void {
    this.#closeCallbacks.add(close);
  }

  /** From now on every use of the handle throws. */
  end(): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    for (const close of this.#closeCallbacks) close();
    this.#closeCallbacks.clear();
  }

  get hasEnded(): boolean {
    return this.#hasEnded;
  }
}
