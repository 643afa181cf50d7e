/** A transaction over user code, and runs that are started on a transaction of the user's own. */
import { StoreError } from "../../core/errors/errors.js";
import type {
  Batch,
  CommitResult,
  Mail,
  NewRun,
  Refusal,
  SentInTransaction,
  StoreTransaction,
} from "../contract/store.js";
import { TransactionGuard } from "../shared/transaction-guard.js";
import type { Queryable, SqlRow } from "../sql/dialect.js";
import { sqliteSyntax } from "../sql/lex.js";
import { deliverBy } from "../sqlite/mail.js";
import { startRunsBy } from "../sqlite/starts.js";
import { planCommit } from "./commit.js";
import type { Begun, RemoteDatabase } from "./database.js";
import type { Result, Statement } from "./driver.js";
import { failedStatement, guardThatFailed, isConnectionLost, isTimedOut, toStoreError } from "./errors.js";
import { GuardedTransaction, timedOut } from "./handle.js";
import { inMessages } from "./message.js";
import { planRenewal } from "./workers.js";

/** If it is still there at the end, so is the transaction that was begun. */
const savepoint: Statement = { sql: "SAVEPOINT pawl_transaction", args: [] };
const release: Statement = { sql: "RELEASE pawl_transaction", args: [] };
const commit: Statement = { sql: "COMMIT", args: [] };

/** Runs that were started with a handle are told of when its transaction commits. */
interface OpenTransaction {
  readonly started: NewRun[];
  startRuns(runs: readonly NewRun[], at: number): Promise<Refusal[]>;
  send(mail: readonly Mail[], at: number): Promise<SentInTransaction>;
}

export class Transactions {
  readonly #db: RemoteDatabase;
  readonly #clock: () => number;
  readonly #onCommit: (batch: Batch, result: CommitResult, started: readonly NewRun[]) => void;
  readonly #open = new WeakMap<object, OpenTransaction>();

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
    const begun = await this.#db.begin(savepoint);
    const started: NewRun[] = [];
    const transaction = new UserTransaction(begun, this.#db.description, this.#clock, (batch, result) =>
      this.#onCommit(batch, result, started),
    );
    this.#open.set(transaction.handle, {
      started,
      startRuns: (runs, at) => startRunsBy(transaction.handle, runs, at),
      send: (mail, at) => deliverBy(transaction.handle, mail, at),
    });
    return transaction;
  }

  /** On one of ours, or a transaction of `@libsql/client` that the caller commits, or anything with a `query`. */
  async startRuns(tx: unknown, runs: readonly NewRun[], at: number): Promise<Refusal[]> {
    const ours = typeof tx === "object" && tx !== null ? this.#open.get(tx) : undefined;
    if (ours !== undefined) {
      const refused = await ours.startRuns(runs, at);
      ours.started.push(...runs);
      return refused;
    }
    try {
      return await startRunsBy(queryableOf(tx), runs, at);
    } catch (error) {
      throw toStoreError(error, "The runs were not started in the transaction");
    }
  }

  /** The same for messages. */
  async send(tx: unknown, mail: readonly Mail[], at: number): Promise<SentInTransaction> {
    const ours = typeof tx === "object" && tx !== null ? this.#open.get(tx) : undefined;
    if (ours !== undefined) return ours.send(mail, at);
    try {
      return await deliverBy(queryableOf(tx), mail, at);
    } catch (error) {
      throw toStoreError(error, "The messages were not sent in the transaction");
    }
  }
}

class UserTransaction implements StoreTransaction {
  readonly handle: GuardedTransaction["handle"];
  readonly #begun: Begun;
  readonly #guard = new TransactionGuard(sqliteSyntax);
  readonly #guarded: GuardedTransaction;
  readonly #description: string;
  readonly #clock: () => number;
  readonly #onCommit: (batch: Batch, result: CommitResult) => void;

  constructor(
    begun: Begun,
    description: string,
    clock: () => number,
    onCommit: (batch: Batch, result: CommitResult) => void,
  ) {
    this.#begun = begun;
    this.#description = description;
    this.#clock = clock;
    this.#onCommit = onCommit;
    this.#guarded = new GuardedTransaction(begun, this.#guard);
    this.handle = this.#guarded.handle;
  }

  async commit(batch: Batch): Promise<CommitResult> {
    try {
      this.#guard.assertUsable();
      this.#guard.end();
      await this.#guarded.settled();
      this.#guard.assertWhole();
      const result = await this.#write(batch);
      this.#onCommit(batch, result);
      return result;
    } catch (error) {
      throw toStoreError(error, this.#description);
    } finally {
      this.#begun.end();
    }
  }

  async #write(batch: Batch): Promise<CommitResult> {
    const { plan, resultOf } = planCommit(batch, this.#clock());
    const count = plan.statements.length;
    if (batch.fence !== null) planRenewal(plan, batch.fence);
    const results: Result[] = [];
    try {
      for (const message of inMessages([release, ...plan.statements, commit])) {
        results.push(...(await this.#begun.watched(this.#begun.transaction.batch(message))));
      }
    } catch (error) {
      const index = failedStatement(error);
      const failed = index === null ? null : results.length + index - 1;
      const refusal = failed === null || guardThatFailed(error) === null ? null : plan.refusalAt(failed);
      if (refusal !== null) return refusal;
      throw this.#notCommitted(error, failed);
    }
    return resultOf(results.slice(1, 1 + count));
  }

  #notCommitted(error: unknown, failed: number | null): unknown {
    if (isTimedOut(error)) return this.#guard.broke(timedOut, error);
    if (failed === -1 && !isConnectionLost(error)) {
      return this.#guard.broke("The transaction of this step was ended before its time.", error);
    }
    return error;
  }

  async rollback(): Promise<void> {
    this.#guard.end();
    this.#begun.end();
  }
}

interface LibsqlTransaction {
  execute(statement: Statement): Promise<{ readonly rows: readonly SqlRow[] }>;
}

function queryableOf(tx: unknown): Queryable {
  if (has(tx, "execute")) {
    if (has(tx, "transaction")) {
      misuse("`tx` is a client: each statement would commit by itself. Pass what its method transaction() gives.");
    }
    const { execute } = tx as LibsqlTransaction;
    return {
      query: async (sql, values) => (await execute.call(tx, { sql, args: values as Statement["args"] })).rows,
    };
  }
  if (has(tx, "query")) return tx as Queryable;
  return misuse("`tx` must be a transaction of @libsql/client, or have a method query(sql, values).");
}

const has = (value: unknown, name: string) =>
  typeof value === "object" && value !== null && typeof Reflect.get(value, name) === "function";

function misuse(message: string): never {
  throw new StoreError(message, { transient: false });
}
