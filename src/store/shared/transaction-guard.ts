/**
 * Stands between user code and the connection of its transaction. The driver's own handle would outlive the transaction: a
 * write through it, after the step has timed out, would commit by itself, and the step's next attempt writes again.
 */
import { TransactionError } from "../../core/errors/errors.js";
import type { SqlSyntax } from "../sql/lex.js";
import { transactionControl } from "../sql/transaction-control.js";

const ended =
  "This transaction has ended, so its `tx` cannot be used any more: await everything that a transactional step does before it returns.";

/** What must be known of a transaction's handle. Each driver has a wrapper that asks this before it passes a call on. */
export class TransactionGuard {
  readonly #syntax: SqlSyntax;
  readonly #closers = new Set<() => void>();
  #isOver = false;
  #broken: TransactionError | null = null;
  #underWay = 0;

  constructor(syntax: SqlSyntax) {
    this.#syntax = syntax;
  }

  /** Throws unless this SQL may be sent. A step that tried to end its transaction is not recorded, even if it catches this. */
  admit(sql: string): void {
    this.assertUsable();
    const control = transactionControl(sql, this.#syntax);
    if (control === null) return;
    throw this.broke(
      `${control} is not allowed in a transactional step: Pawl commits its transaction together with the step's record. Use savepoints, or throw to roll back.`,
    );
  }

  /** Throws when the transaction has ended, or cannot be committed any more. */
  assertUsable(): void {
    if (this.#isOver) throw new TransactionError(ended);
    this.assertWhole();
  }

  /** Throws when the step must not be recorded. */
  assertWhole(): void {
    if (this.#broken !== null) throw this.#broken;
  }

  /** From now on the transaction can only be rolled back. */
  broke(message: string, cause?: unknown): TransactionError {
    this.#broken ??= new TransactionError(message, cause === undefined ? {} : { cause });
    return this.#broken;
  }

  /** Counts a call for as long as it takes. It is passed on, and an error of it that user code does not await harms no process. */
  async track<T>(call: Promise<T>): Promise<T> {
    const leave = this.enter();
    try {
      return await call;
    } finally {
      leave();
    }
  }

  /** For a call that has no promise; the returned function says that it is over. */
  enter(): () => void {
    let isUnderWay = true;
    this.#underWay += 1;
    return () => {
      if (isUnderWay) this.#underWay -= 1;
      isUnderWay = false;
    };
  }

  /** Whether a call of user code is under way, so that the connection must not be used for anything else. */
  get isBusy(): boolean {
    return this.#underWay > 0;
  }

  /** Something that is open on the connection, such as an iterator, and is closed at the end. */
  opened(close: () => void): void {
    this.#closers.add(close);
  }

  /** The handle is of no use from now on. */
  end(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    for (const close of this.#closers) close();
    this.#closers.clear();
  }

  get isOver(): boolean {
    return this.#isOver;
  }
}
