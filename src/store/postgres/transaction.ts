/** Transactions of steps whose writes commit together with the step's record. */
import { FencedError, StoreError } from "../../core/errors/errors.js";
import type { Batch, CommitResult, StoreTransaction } from "../contract/store.js";
import { TransactionGuard } from "../shared/transaction-guard.js";
import { postgresSyntax } from "../sql/lexer.js";
import type { Committer } from "./commit/commit.js";
import type { Database } from "./connection/database.js";
import type { PgPoolClient, PgQuery, PgResult } from "./connection/driver.js";
import { isConnectionLost, isTransactionAborted, runOfDuplicateEvent, toStoreError } from "./connection/errors.js";
import { createGuardedClient } from "./connection/guarded-client.js";
import type { LostWriteDetector } from "./lost-write-detector.js";
import type { OperationTracker } from "./operation-tracker.js";

/** Identifies a transaction by its session and start. Before the step is recorded, the identity must be the same. */
const transactionIdentityQuery =
  "SELECT pg_backend_pid() || ' ' || extract(epoch FROM transaction_timestamp())::text AS id";
const transactionIdOf = (result: PgResult | undefined): unknown => result?.rows[0]?.id;

export class PostgresTransaction implements StoreTransaction {
  /** A `pg` client inside a transaction, which refuses COMMIT and ROLLBACK. */
  readonly handle: unknown;
  readonly #client: PgPoolClient;
  readonly #id: unknown;
  readonly #db: Database;
  readonly #committer: Committer;
  readonly #operations: OperationTracker;
  readonly #lostWriteDetector: LostWriteDetector;
  readonly #onCommitted: (batch: Batch, result: CommitResult) => void;
  readonly #onEnd: (transaction: PostgresTransaction) => void;
  readonly #guard = new TransactionGuard(postgresSyntax);
  #isOpen = true;

  static async begin(
    db: Database,
    committer: Committer,
    operations: OperationTracker,
    lostWriteDetector: LostWriteDetector,
    onCommitted: (batch: Batch, result: CommitResult) => void,
    onEnd: (transaction: PostgresTransaction) => void,
  ): Promise<PostgresTransaction> {
    const { client, firstResult } = await db.checkOut(transactionIdentityQuery);
    const id = transactionIdOf(firstResult);
    return new PostgresTransaction(client, id, db, committer, operations, lostWriteDetector, onCommitted, onEnd);
  }

  private constructor(
    client: PgPoolClient,
    id: unknown,
    db: Database,
    committer: Committer,
    operations: OperationTracker,
    lostWriteDetector: LostWriteDetector,
    onCommitted: (batch: Batch, result: CommitResult) => void,
    onEnd: (transaction: PostgresTransaction) => void,
  ) {
    this.#client = client;
    this.#id = id;
    this.#db = db;
    this.#committer = committer;
    this.#operations = operations;
    this.#lostWriteDetector = lostWriteDetector;
    this.#onCommitted = onCommitted;
    this.#onEnd = onEnd;
    this.handle = createGuardedClient(client, this.#guard);
  }

  /** Closing the store waits for a commit that has begun, but not for user code before the commit. */
  commit(batch: Batch): Promise<CommitResult> {
    return this.#operations.run(() => this.#commit(batch));
  }

  async #commit(batch: Batch): Promise<CommitResult> {
    this.#guard.assertUsable();
    this.#guard.end();
    let result: CommitResult;
    try {
      if (batch.fence !== null) this.#lostWriteDetector.assertNotLost(batch.fence);
      await this.#assertSameTransaction();
      result = await this.#committer.apply(async (query) => (await this.#sendQuery(query)).rows, batch);
      if (result.kind !== "committed") {
        await this.rollback();
        return result;
      }
      const { command } = await this.#sendQuery({ text: "COMMIT" });
      if (command !== "COMMIT") throw this.#guard.markBroken("The server has rolled this transaction back.");
    } catch (error) {
      await this.#end(isConnectionLost(error) ? "give up" : "roll back");
      if (error instanceof FencedError) return { kind: "fenced" };
      this.#lostWriteDetector.forgetLogEnds(batch);
      if (runOfDuplicateEvent(error) === null) throw toStoreError(error);
      return this.#committer.conflictOf((query) => this.#db.read(query), batch, error);
    }
    await this.#end("return");
    this.#onCommitted(batch, result);
    return result;
  }

  /** Throws if the transaction has ended: the step's writes may be lost, so the step must not be recorded. */
  async #assertSameTransaction(): Promise<void> {
    const result = await this.#sendQuery({ text: transactionIdentityQuery }).catch((error: unknown) => {
      if (!isTransactionAborted(error)) throw error;
      throw this.#guard.markBroken(
        "A statement of this step failed, and PostgreSQL has rolled its whole transaction back, although the step caught the error. To go on after an error, set a savepoint before the statement and roll back to it.",
        error,
      );
    });
    if (transactionIdOf(result) !== this.#id)
      throw this.#guard.markBroken("The transaction of this step was ended before the step did.");
  }

  #sendQuery(query: PgQuery): Promise<PgResult> {
    return this.#db.sendQuery(this.#client, query);
  }

  async rollback({ discard = false }: { readonly discard?: boolean } = {}): Promise<void> {
    // ROLLBACK would wait for a statement that is running, and the user's code might send another one after it.
    await this.#end(discard || this.#guard.isBusy ? "give up" : "roll back");
  }

  /** Called when the store closes: ends the transaction even if user code is still using it. */
  abandon(): void {
    void this.#end("give up");
  }

  async #end(ending: "return" | "roll back" | "give up"): Promise<void> {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    this.#guard.end();
    // If ROLLBACK fails, the connection is closed, which makes the server roll back.
    const isClean =
      ending === "return" ||
      (ending === "roll back" &&
        (await this.#sendQuery({ text: "ROLLBACK" }).then(
          () => true,
          () => false,
        )));
    this.#onEnd(this);
    if (isClean) this.#db.returnConnection(this.#client);
    else await this.#db.discardConnection(this.#client);
  }
}

/** The part of a caller's `pg` client that the store uses. */
export interface CallerTransaction {
  query(text: string, values: readonly unknown[]): Promise<{ readonly rows: readonly Record<string, unknown>[] }>;
}

export function assertTransaction(tx: unknown): asserts tx is CallerTransaction {
  if (typeof (tx as CallerTransaction | null)?.query === "function") return;
  throw new StoreError("`tx` must be a `pg` client with an open transaction: an object with query(text, values).", {
    transient: false,
  });
}
