/** A transaction on a connection of its own, for user code. Nothing is retried. */
import { StoreError } from "../../core/errors.js";
import { commit, rollback } from "./block.js";
import type { Connection } from "./connections.js";
import { inBlocks, type Result, type Session, type Transaction } from "./session.js";
import type { Quote, Sql } from "./sql.js";

/** How a transaction leaves its connection: in no transaction, or in a state that is not known. */
export type Leaving = "clean" | "unknown";

/**
 * The connection goes back to the pool, and another transaction may have it a moment later. So what has ended is noted
 * here, once per transaction: asking the connection whether it is in use would answer for the other transaction.
 */
export class UserTransaction implements Transaction {
  readonly #connection: Connection;
  readonly #session: Session;
  readonly #onEnd: (transaction: UserTransaction, leaving: Leaving) => void;
  #hasEnded = false;
  #rollingBack: Promise<void> | null = null;

  constructor(connection: Connection, quote: Quote, onEnd: (transaction: UserTransaction, leaving: Leaving) => void) {
    this.#connection = connection;
    this.#onEnd = onEnd;
    const { driver, maxPacket, capabilities } = connection;
    const query = async (text: string) => {
      this.#assertOpen();
      return driver.query(text);
    };
    this.#session = inBlocks(query, { quote, maxPacket, ...capabilities });
  }

  get handle(): unknown {
    return this.#connection.driver;
  }

  run(statements: readonly Sql[]): Promise<readonly Result[]> {
    return this.#session.run(statements);
  }

  async commit(statements: readonly Sql[]): Promise<readonly Result[]> {
    const results = await this.#session.run([...statements, commit]);
    this.#end("clean");
    return results.slice(0, -1);
  }

  /** Does nothing if the transaction has ended: its connection may be in another transaction by now. */
  async rollback(): Promise<void> {
    if (this.#hasEnded) return;
    this.#rollingBack ??= this.#rollBack();
    await this.#rollingBack;
  }

  /** The store closes, whatever user code is doing: the connection is cut off, and the server rolls back. */
  abandon(): void {
    this.#end("unknown");
  }

  async #rollBack(): Promise<void> {
    await this.#connection.driver.query(rollback.text).then(
      () => this.#end("clean"),
      () => this.#end("unknown"),
    );
  }

  #end(leaving: Leaving): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    this.#onEnd(this, leaving);
  }

  #assertOpen(): void {
    if (this.#hasEnded || this.#rollingBack !== null) {
      throw new StoreError("The transaction has ended.", { transient: false });
    }
  }
}
