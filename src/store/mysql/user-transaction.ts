/** The transaction of a transactional step, on its own connection. None of its statements is retried. */
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
 * The state of the connection after its transaction. "clean": no transaction is open. "in use": user code that the
 * store no longer waits for may still use the connection. "unknown": it is unknown whether COMMIT was executed.
 */
export type ConnectionEndState = "clean" | "in use" | "unknown";

type OnEnd = (transaction: UserTransaction, endState: ConnectionEndState) => Promise<void>;

/**
 * When the transaction has ended, its connection returns to the pool, and another transaction may use it at once. So
 * this object records that the transaction has ended: the state of the connection would be that of the other
 * transaction.
 */
export class UserTransaction implements Transaction {
  readonly #connection: PooledConnection;
  readonly #session: Session;
  readonly #onEnd: OnEnd;
  readonly #guard = new TransactionGuard(mysqlSyntax);
  readonly #guardedConnection: GuardedConnection;
  /** The store sends these before its first own statement. They fail if user code has ended the transaction. */
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
      allowsMultipleStatements: false,
      ...capabilities,
    });
    this.#guardedConnection = new GuardedConnection(connection, this.#guard);
  }

  get handle(): unknown {
    return this.#guardedConnection.handle;
  }

  /** Called when user code has finished. Waits for calls that it did not await: they belong to the step as well. */
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
      throw this.#guard.markBroken("The transaction of this step ended before the step did.", error);
    });
    return results.slice(openingStatements.length);
  }

  async commit(statements: readonly Sql[]): Promise<readonly Result[]> {
    try {
      const results = await this.run([...statements, commit]);
      await this.#end("clean");
      return results.slice(0, -1);
    } catch (error) {
      // The caller next reads whether the transaction was committed, so the session must have ended by then.
      if (isConnectionLost(error)) await this.#end("unknown");
      throw error;
    }
  }

  /** Does nothing if the transaction has ended: its connection may be in another transaction by now. */
  async rollback({ discard = false }: { readonly discard?: boolean } = {}): Promise<void> {
    this.#guard.end();
    // A ROLLBACK would wait for a running statement, and user code might send another one after it.
    await (this.#endPromise ?? (discard || this.#guard.isBusy ? this.#end("in use") : this.#rollBack()));
  }

  /**
   * Called when the store closes: closes the connection even if user code still uses it, and the server rolls the
   * transaction back.
   */
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
