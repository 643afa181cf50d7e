/** Transactions for steps whose writes commit with their record. */
import { FencedError, StoreError } from "../../core/errors/errors.js";
import type { Batch, CommitResult, StoreTransaction } from "../contract/store.js";
import { TransactionGuard } from "../shared/transaction-guard.js";
import { postgresSyntax } from "../sql/lex.js";
import type { Committer } from "./commit/commit.js";
import type { Database } from "./connection/database.js";
import type { PgPoolClient, PgQuery, PgResult } from "./connection/driver.js";
import { isAborted, isConnectionLost, runOfDuplicateEvent, toStoreError } from "./connection/errors.js";
import { guardedClient } from "./connection/handle.js";
import type { History } from "./history.js";
import type { Operations } from "./operations.js";

/** What a session's transaction is known by: its beginning. Asked again before anything is recorded. */
const identity = "SELECT pg_backend_pid() || ' ' || extract(epoch FROM transaction_timestamp())::text AS id";
const idOf = (result: PgResult | undefined): unknown => result?.rows[0]?.id;

export class PostgresTransaction implements StoreTransaction {
  /** A `pg` client inside a transaction. COMMIT and ROLLBACK are ours. */
  readonly handle: unknown;
  readonly #client: PgPoolClient;
  readonly #id: unknown;
  readonly #db: Database;
  readonly #committer: Committer;
  readonly #operations: Operations;
  readonly #history: History;
  readonly #onCommitted: (batch: Batch, result: CommitResult) => void;
  readonly #onEnd: (transaction: PostgresTransaction) => void;
  readonly #guard = new TransactionGuard(postgresSyntax);
  #open = true;

  static async begin(
    db: Database,
    committer: Committer,
    operations: Operations,
    history: History,
    onCommitted: (batch: Batch, result: CommitResult) => void,
    onEnd: (transaction: PostgresTransaction) => void,
  ): Promise<PostgresTransaction> {
    const { client, answer } = await db.checkOut(identity);
    const id = idOf(answer);
    return new PostgresTransaction(client, id, db, committer, operations, history, onCommitted, onEnd);
  }

  private constructor(
    client: PgPoolClient,
    id: unknown,
    db: Database,
    committer: Committer,
    operations: Operations,
    history: History,
    onCommitted: (batch: Batch, result: CommitResult) => void,
    onEnd: (transaction: PostgresTransaction) => void,
  ) {
    this.#client = client;
    this.#id = id;
    this.#db = db;
    this.#committer = committer;
    this.#operations = operations;
    this.#history = history;
    this.#onCommitted = onCommitted;
    this.#onEnd = onEnd;
    this.handle = guardedClient(client, this.#guard);
  }

  /** Closing the store waits for this, but not for user code that has not come so far. */
  commit(batch: Batch): Promise<CommitResult> {
    return this.#operations.run(() => this.#commit(batch));
  }

  async #commit(batch: Batch): Promise<CommitResult> {
    this.#guard.assertUsable();
    this.#guard.end();
    let result: CommitResult;
    try {
      if (batch.fence !== null) this.#history.check(batch.fence);
      await this.#assertSame();
      result = await this.#committer.apply(async (query) => (await this.#ask(query)).rows, batch);
      if (result.kind !== "committed") {
        await this.rollback();
        return result;
      }
      const { command } = await this.#ask({ text: "COMMIT" });
      if (command !== "COMMIT") throw this.#guard.broke("The server has rolled this transaction back.");
    } catch (error) {
      await this.#end(isConnectionLost(error) ? "give up" : "roll back");
      if (error instanceof FencedError) return { kind: "fenced" };
      this.#history.uncertain(batch);
      if (runOfDuplicateEvent(error) === null) throw toStoreError(error);
      return this.#committer.conflictOf((query) => this.#db.read(query), batch, error);
    }
    await this.#end("return");
    this.#onCommitted(batch, result);
    return result;
  }

  /** What the step wrote is gone if its transaction is: then the step must not be recorded either. */
  async #assertSame(): Promise<void> {
    const result = await this.#ask({ text: identity }).catch((error: unknown) => {
      if (!isAborted(error)) throw error;
      throw this.#guard.broke(
        "A statement of this step failed, and PostgreSQL has rolled its whole transaction back, although the step caught the error. To go on after an error, set a savepoint before the statement and roll back to it.",
        error,
      );
    });
    if (idOf(result) !== this.#id) throw this.#guard.broke("The transaction of this step was ended before its time.");
  }

  #ask(query: PgQuery): Promise<PgResult> {
    return this.#db.ask(this.#client, query);
  }

  async rollback({ discard = false }: { readonly discard?: boolean } = {}): Promise<void> {
    // A statement that is under way would be waited for, and the code that sent it might send another.
    await this.#end(discard || this.#guard.isBusy ? "give up" : "roll back");
  }

  /** The store closes: whatever user code is doing, this is over. */
  abandon(): void {
    void this.#end("give up");
  }

  async #end(how: "return" | "roll back" | "give up"): Promise<void> {
    if (!this.#open) return;
    this.#open = false;
    this.#guard.end();
    // A connection that cannot roll back is closed, which rolls back.
    const isClean =
      how === "return" ||
      (how === "roll back" &&
        (await this.#ask({ text: "ROLLBACK" }).then(
          () => true,
          () => false,
        )));
    this.#onEnd(this);
    if (isClean) this.#db.giveBack(this.#client);
    else await this.#db.giveUp(this.#client);
  }
}

/** What a caller's own transaction must be able to do. */
export interface CallersTransaction {
  query(text: string, values: readonly unknown[]): Promise<{ readonly rows: readonly Record<string, unknown>[] }>;
}

export function assertTransaction(tx: unknown): asserts tx is CallersTransaction {
  if (typeof (tx as CallersTransaction | null)?.query === "function") return;
  throw new StoreError("`tx` must be a `pg` client with an open transaction: an object with query(text, values).", {
    transient: false,
  });
}
