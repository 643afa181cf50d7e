/** A transaction on a connection of its own, for user code. Nothing is retried. */
import { StoreError } from "../../core/errors/errors.js";
import { TransactionGuard } from "../shared/transaction-guard.js";
import { mysqlSyntax } from "../sql/lexer.js";
import type { PooledConnection } from "./connection-pool.js";
import { isConnectionLost, isMissingSavepoint } from "./errors.js";
import { GuardedConnection } from "./handle.js";
import { createBlockSession, type Result, type Session, type Transaction } from "./session.js";
import type { Quote, Sql } from "./sql.js";
import { begin, commit, proofSavepoint, releaseProofSavepoint, rollback } from "./transaction-block.js";

/**
 * How a transaction leaves its connection: in no transaction; in use by code that was given up on; or with a COMMIT of which
 * is not known whether it was carried out.
 */
export type ConnectionEndState = "clean" | "in use" | "unknown";

type OnEnd = (transaction: UserTransaction, leaving: ConnectionEndState) => Promise<void>;

/**
 * The connection goes back to the pool, and another transaction may have it a moment later. So what has ended is noted
 * here, once per transaction: asking the connection whether it is in use would answer for the other transaction.
 */
export class UserTransaction implements Transaction {
  readonly #connection: PooledConnection;
  readonly #session: Session;
  readonly #onEnd: OnEnd;
  readonly #guard = new TransactionGuard(mysqlSyntax);
  readonly #guardedConnection: GuardedConnection;
  /** Sent before the first of our own statements: proves that this is still the transaction that was begun. */
  #openingStatements: readonly Sql[] = [releaseProofSavepoint];
  #endPromise: Promise<void> | null = null;

  static async begin(connection: PooledConnection, quote: Quote, onEnd: OnEnd): Promise<UserTransaction> {
    const transaction = new UserTransaction(connection, quote, onEnd);
    await transaction.#session.run([begin, proofSavepoint]);
    return transaction;
  }

  private constructor(connection: PooledConnection, quote: Quote, onEnd: OnEnd) {
    this.#connection = connection;
    this.#onEnd = onEnd;
    const { maxPacket, capabilities } = connection;
    this.#session = createBlockSession((text) => connection.query(text), {
      quote,
      maxPacket,
      mayJoin: false,
      ...capabilities,
    });
    this.#guardedConnection = new GuardedConnection(connection, this.#guard);
  }

  get handle(): unknown {
    return this.#guardedConnection.handle;
  }

  /** User code is done. What it did not wait for belongs to the step all the same, so that is waited for here. */
  async waitForUserCode(): Promise<void> {
    this.#assertOpen();
    this.#guard.end();
    await this.#guardedConnection.waitForCalls();
    this.#guard.assertNotBroken();
  }

  async run(statements: readonly Sql[]): Promise<readonly Result[]> {
    this.#assertOpen();
    const openingStatements = this.#openingStatements;
    this.#openingStatements = [];
    const results = await this.#session.run([...openingStatements, ...statements]).catch((error: unknown) => {
      if (openingStatements.length === 0 || !isMissingSavepoint(error)) throw error;
      throw this.#guard.markBroken("The transaction of this step was ended before its time.", error);
    });
    return results.slice(openingStatements.length);
  }

  async commit(statements: readonly Sql[]): Promise<readonly Result[]> {
    try {
      const results = await this.run([...statements, commit]);
      await this.#end("clean");
      return results.slice(0, -1);
    } catch (error) {
      // Whether it has committed is not known, and must not change any more when that is asked.
      if (isConnectionLost(error)) await this.#end("unknown");
      throw error;
    }
  }

  /** Does nothing if the transaction has ended: its connection may be in another transaction by now. */
  async rollback({ discard = false }: { readonly discard?: boolean } = {}): Promise<void> {
    this.#guard.end();
    // A statement that is under way would be waited for, and the code that sent it might send another.
    await (this.#endPromise ?? (discard || this.#guard.isBusy ? this.#end("in use") : this.#rollBack()));
  }

  /** The store closes, whatever user code is doing: the connection is cut off, and the server rolls back. */
  abandon(): Promise<void> {
    return this.#end("in use");
  }

  #rollBack(): Promise<void> {
    this.#endPromise = this.#connection.query(rollback.text).then(
      () => this.#onEnd(this, "clean"),
      () => this.#onEnd(this, "in use"),
    );
    return this.#endPromise;
  }

  #end(endState: ConnectionEndState): Promise<void> {
    this.#guard.end();
    if (endState !== "clean") this.#guardedConnection.disconnect();
    this.#endPromise ??= this.#onEnd(this, endState);
    return this.#endPromise;
  }

  #assertOpen(): void {
    if (this.#endPromise !== null) throw new StoreError("The transaction has ended.", { transient: false });
  }
}
