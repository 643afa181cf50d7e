/** A table of the user in the same database: rows that a transactional step writes are there exactly if its record is. */
import { StoreError, TransactionError } from "../../../src/core/errors/errors.js";
import type { Batch, CommitResult, StoreTransaction } from "../../../src/store/contract/store.js";

export interface UserRow {
  readonly run: string;
  readonly step: string;
  readonly token: string;
}

/** What a transactional step gets as `tx`. */
export interface UserHandle {
  insert(row: UserRow): Promise<void>;
  /** The database rolls the transaction back because of a deadlock. */
  doom(): void;
}

export class UserTable {
  readonly rows: UserRow[] = [];
}

export class UserTransaction {
  readonly #table: UserTable;
  readonly #inner: StoreTransaction;
  readonly #rows: UserRow[] = [];
  #state: "open" | "doomed" | "ended" = "open";

  constructor(table: UserTable, inner: StoreTransaction) {
    this.#table = table;
    this.#inner = inner;
  }

  insert(row: UserRow): void {
    if (this.#state === "ended") throw new TransactionError("The transaction has ended.");
    if (this.#state === "doomed") throw new StoreError("The transaction was rolled back.", { transient: false });
    this.#rows.push(row);
  }

  /** A deadlock rolls the transaction back; user code may catch its error, and nothing can be committed all the same. */
  doom(): void {
    if (this.#state === "open") this.#state = "doomed";
  }

  async commit(batch: Batch): Promise<CommitResult> {
    if (this.#state !== "open") throw new TransactionError("The transaction cannot be committed.");
    this.#state = "ended";
    const result = await this.#inner.commit(batch);
    if (result.kind === "committed") this.#table.rows.push(...this.#rows);
    return result;
  }

  end(): void {
    this.#state = "ended";
  }
}
