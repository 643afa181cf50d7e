/** The transaction of a transactional step, and starts and messages inside a transaction that the caller has opened. */
import { StoreError } from "../../core/errors/errors.js";
import type {
  Batch,
  CommitResult,
  Message,
  NewRun,
  RefusedStart,
  SentInTransaction,
  StoreTransaction,
} from "../contract/store.js";
import { TransactionGuard } from "../shared/transaction-guard.js";
import type { Queryable, SqlRow } from "../sql/dialect.js";
import { sqliteSyntax } from "../sql/lexer.js";
import { deliverMessagesAsync } from "../sqlite/messages.js";
import { startRunsAsync } from "../sqlite/starts.js";
import { planCommit } from "./commit.js";
import type { RemoteDatabase, ServerTransaction } from "./database.js";
import type { Result, Statement } from "./driver.js";
import {
  failedGuardIndex,
  failedStatementIndex,
  isConnectionLost,
  isTransactionTimeout,
  toStoreError,
} from "./errors.js";
import { GuardedTransaction, transactionTimeoutMessage } from "./handle.js";
import { splitIntoRequests } from "./request-size.js";
import { planRenewal } from "./workers.js";

/** The savepoint is set at the start. If it still exists at the end, user code has not ended the transaction. */
const savepoint: Statement = { sql: "SAVEPOINT pawl_transaction", args: [] };
const releaseSavepoint: Statement = { sql: "RELEASE pawl_transaction", args: [] };
const commit: Statement = { sql: "COMMIT", args: [] };

/**
 * The open transaction that a handle belongs to, for the runs that user code starts and the messages that it sends with
 * that handle.
 */
interface OpenTransaction {
  /** Hints about these runs are emitted when the transaction has committed. */
  readonly startedRuns: NewRun[];
  startRuns(runs: readonly NewRun[], at: number): Promise<RefusedStart[]>;
  send(messages: readonly Message[], at: number): Promise<SentInTransaction>;
}

export class UserTransactions {
  readonly #db: RemoteDatabase;
  readonly #clock: () => number;
  readonly #onCommit: (batch: Batch, result: CommitResult, started: readonly NewRun[]) => void;
  readonly #openTransactions = new WeakMap<object, OpenTransaction>();

  constructor(
    db: RemoteDatabase,
    clock: () => number,
    onCommit: (batch: Batch, result: CommitResult, started: readonly NewRun[]) => void,
  ) {
    this.#db = db;
    this.#clock = clock;
    this.#onCommit = onCommit;
  }

  async begin(): Promise<StoreTransaction> {
    const serverTransaction = await this.#db.begin(savepoint);
    const startedRuns: NewRun[] = [];
    const transaction = new UserTransaction(serverTransaction, this.#db.description, this.#clock, (batch, result) =>
      this.#onCommit(batch, result, startedRuns),
    );
    this.#openTransactions.set(transaction.handle, {
      startedRuns,
      startRuns: (runs, at) => startRunsAsync(transaction.handle, runs, at),
      send: (messages, at) => deliverMessagesAsync(transaction.handle, messages, at),
    });
    return transaction;
  }

  /** `tx` is a handle of Pawl, a transaction of `@libsql/client` that the caller ends, or any object with a `query`. */
  async startRuns(tx: unknown, runs: readonly NewRun[], at: number): Promise<RefusedStart[]> {
    const openTransaction = typeof tx === "object" && tx !== null ? this.#openTransactions.get(tx) : undefined;
    if (openTransaction !== undefined) {
      const refused = await openTransaction.startRuns(runs, at);
      openTransaction.startedRuns.push(...runs);
      return refused;
    }
    try {
      return await startRunsAsync(toQueryable(tx), runs, at);
    } catch (error) {
      throw toStoreError(error, "The runs were not started in the transaction");
    }
  }

  /** `tx` is as in `startRuns`. */
  async send(tx: unknown, messages: readonly Message[], at: number): Promise<SentInTransaction> {
    const openTransaction = typeof tx === "object" && tx !== null ? this.#openTransactions.get(tx) : undefined;
    if (openTransaction !== undefined) return openTransaction.send(messages, at);
    try {
      return await deliverMessagesAsync(toQueryable(tx), messages, at);
    } catch (error) {
      throw toStoreError(error, "The messages were not sent in the transaction");
    }
  }
}

class UserTransaction implements StoreTransaction {
  readonly handle: GuardedTransaction["handle"];
  readonly #serverTransaction: ServerTransaction;
  readonly #guard = new TransactionGuard(sqliteSyntax);
  readonly #guardedTransaction: GuardedTransaction;
  readonly #description: string;
  readonly #clock: () => number;
  readonly #onCommit: (batch: Batch, result: CommitResult) => void;

  constructor(
    serverTransaction: ServerTransaction,
    description: string,
    clock: () => number,
    onCommit: (batch: Batch, result: CommitResult) => void,
  ) {
    this.#serverTransaction = serverTransaction;
    this.#description = description;
    this.#clock = clock;
    this.#onCommit = onCommit;
    this.#guardedTransaction = new GuardedTransaction(serverTransaction, this.#guard);
    this.handle = this.#guardedTransaction.handle;
  }

  async commit(batch: Batch): Promise<CommitResult> {
    try {
      this.#guard.assertUsable();
      this.#guard.end();
      await this.#guardedTransaction.waitForCalls();
      this.#guard.assertNotBroken();
      const result = await this.#write(batch);
      this.#onCommit(batch, result);
      return result;
    } catch (error) {
      throw toStoreError(error, this.#description);
    } finally {
      this.#serverTransaction.end();
    }
  }

  async #write(batch: Batch): Promise<CommitResult> {
    const { plan, resultOf } = planCommit(batch, this.#clock());
    const planLength = plan.statements.length;
    if (batch.fence !== null) planRenewal(plan, batch.fence);
    const results: Result[] = [];
    try {
      for (const request of splitIntoRequests([releaseSavepoint, ...plan.statements, commit])) {
        results.push(
          ...(await this.#serverTransaction.withDeadline(this.#serverTransaction.transaction.batch(request))),
        );
      }
    } catch (error) {
      const index = failedStatementIndex(error);
      const failedIndex = index === null ? null : results.length + index - 1;
      const refusal = failedIndex === null || failedGuardIndex(error) === null ? null : plan.refusalAt(failedIndex);
      if (refusal !== null) return refusal;
      throw this.#commitErrorOf(error, failedIndex);
    }
    return resultOf(results.slice(1, 1 + planLength));
  }

  #commitErrorOf(error: unknown, failedIndex: number | null): unknown {
    if (isTransactionTimeout(error)) return this.#guard.markBroken(transactionTimeoutMessage, error);
    // Index -1 is the statement before the plan, which releases the savepoint.
    if (failedIndex === -1 && !isConnectionLost(error)) {
      return this.#guard.markBroken("The transaction of this step ended before the step did.", error);
    }
    return error;
  }

  async rollback(): Promise<void> {
    this.#guard.end();
    this.#serverTransaction.end();
  }
}

interface LibsqlTransaction {
  execute(statement: Statement): Promise<{ readonly rows: readonly SqlRow[] }>;
}

function toQueryable(tx: unknown): Queryable {
  if (hasMethod(tx, "execute")) {
    if (hasMethod(tx, "transaction")) {
      throwMisuse("`tx` is a client: each statement would commit by itself. Pass what its transaction() returns.");
    }
    const { execute } = tx as LibsqlTransaction;
    return {
      query: async (sql, values) => (await execute.call(tx, { sql, args: values as Statement["args"] })).rows,
    };
  }
  if (hasMethod(tx, "query")) return tx as Queryable;
  return throwMisuse("`tx` must be a transaction of @libsql/client, or have a method query(sql, values).");
}

const hasMethod = (value: unknown, name: string) =>
  typeof value === "object" && value !== null && typeof Reflect.get(value, name) === "function";

function throwMisuse(message: string): never {
  throw new StoreError(message, { transient: false });
}
