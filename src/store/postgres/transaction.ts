/** Transactions for steps whose writes commit with their record. */
import { InvalidStateError, StoreError } from "../../core/errors.js";
import type { Batch, CommitResult, StoreTransaction } from "../store.js";
import type { Applied, Committer } from "./commit.js";
import type { Database } from "./database.js";
import type { PgPoolClient } from "./driver.js";
import { runOfDuplicateEvent, toStoreError } from "./errors.js";
import type { Operations } from "./operations.js";

export class PostgresTransaction implements StoreTransaction {
  readonly #client: PgPoolClient;
  readonly #db: Database;
  readonly #committer: Committer;
  readonly #operations: Operations;
  readonly #onCommitted: (batch: Batch, applied: Applied) => Promise<void>;
  readonly #onEnd: (transaction: PostgresTransaction) => void;
  #open = true;

  constructor(
    client: PgPoolClient,
    db: Database,
    committer: Committer,
    operations: Operations,
    onCommitted: (batch: Batch, applied: Applied) => Promise<void>,
    onEnd: (transaction: PostgresTransaction) => void,
  ) {
    this.#client = client;
    this.#db = db;
    this.#committer = committer;
    this.#operations = operations;
    this.#onCommitted = onCommitted;
    this.#onEnd = onEnd;
  }

  /** A `pg` client inside a transaction. COMMIT and ROLLBACK are ours. */
  get handle(): unknown {
    return this.#client;
  }

  /** Closing the store waits for this, but not for user code that has not come so far. */
  commit(batch: Batch): Promise<CommitResult> {
    return this.#operations.run(() => this.#commit(batch));
  }

  async #commit(batch: Batch): Promise<CommitResult> {
    if (!this.#open) throw new InvalidStateError("This transaction has ended already.");
    let applied: Applied;
    try {
      applied = await this.#committer.apply(async (query) => (await this.#client.query(query)).rows, batch);
    } catch (error) {
      await this.rollback();
      if (runOfDuplicateEvent(error) === null) throw toStoreError(error);
      return this.#committer.conflictOf((query) => this.#db.read(query), batch, error);
    }
    if (applied.result.kind !== "committed") {
      await this.rollback();
      return applied.result;
    }
    try {
      await this.#client.query({ text: "COMMIT" });
    } catch (error) {
      this.#end(true);
      throw toStoreError(error);
    }
    this.#end(false);
    await this.#onCommitted(batch, applied);
    return applied.result;
  }

  async rollback(): Promise<void> {
    if (!this.#open) return;
    // A connection that cannot roll back is closed, which rolls back.
    const failed = await this.#client.query({ text: "ROLLBACK" }).then(
      () => false,
      () => true,
    );
    this.#end(failed);
  }

  /** The store closes: whatever user code is doing, this is over. */
  abandon(): void {
    this.#end(true);
  }

  #end(destroy: boolean): void {
    if (!this.#open) return;
    this.#open = false;
    this.#onEnd(this);
    this.#client.release(destroy);
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
