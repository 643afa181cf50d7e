/** A transaction on a connection of its own, for user code: nothing is retried, one statement at a time. */
import { StoreError } from "../../core/errors.js";
import type { Connection } from "./connections.js";
import { type Result, type Session, singly, type Transaction, tooLarge } from "./session.js";
import { type Quote, type Sql, sql, write } from "./sql.js";

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
    const { driver, maxPacket } = connection;
    this.#session = singly(async (text, values) => {
      this.#assertOpen();
      const written = write(sql(text, values), quote);
      if (Buffer.byteLength(written) > maxPacket - 1024) throw tooLarge(Buffer.byteLength(written), maxPacket);
      return driver.query(written);
    });
  }

  get handle(): unknown {
    return this.#connection.driver;
  }

  run(statements: readonly Sql[]): Promise<readonly Result[]> {
    return this.#session.run(statements);
  }

  async commit(statements: readonly Sql[]): Promise<readonly Result[]> {
    const results = await this.#session.run([...statements, sql("COMMIT")]);
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
    await this.#connection.driver.query("ROLLBACK").then(
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
