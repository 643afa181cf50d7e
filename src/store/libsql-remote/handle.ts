/**
 * The `tx` of a transactional step: a transaction of `@libsql/client` whose calls the transaction's guard checks first,
 * and `query(sql, values)`, which the handles of all SQL stores have.
 *
 * The handle sends a statement only after the server has answered the preceding one: if the preceding statement made
 * the server roll the transaction back, the next statement would commit by itself.
 */
import { TransactionError } from "../../core/errors/errors.js";
import type { TransactionGuard } from "../shared/transaction-guard.js";
import type { SqlRow } from "../sql/dialect.js";
import type { ServerTransaction } from "./database.js";
import type { Result, Statement, Value } from "./driver.js";
import { isConnectionLost, isTransactionTimeout } from "./errors.js";
import { toSendable } from "./request-size.js";

type UserStatement =
  | string
  | { readonly sql: string; readonly args?: unknown }
  | readonly [sql: string, args?: unknown];

/** The `tx` of a transactional step on a libSQL server. */
export interface LibsqlTransactionHandle {
  /** Executes one statement, as in `@libsql/client`. */
  execute(
    statement:
      | string
      | {
          /** One statement, with `?` or named placeholders. */
          readonly sql: string;
          /** The values of the placeholders. */
          readonly args?: unknown;
        },
    args?: unknown,
  ): Promise<Result>;
  /** Sends all statements in one round trip, as in `@libsql/client`. */
  batch(statements: readonly UserStatement[]): Promise<readonly Result[]>;
  /** Executes several statements in one text, without values. */
  executeMultiple(sql: string): Promise<void>;
  /** Executes one statement and resolves with its rows, as the handles of all SQL stores do. */
  query(sql: string, values?: readonly unknown[]): Promise<readonly SqlRow[]>;
  /** True when the transaction has ended. */
  readonly closed: boolean;
}

export const transactionTimeoutMessage =
  "The server has ended the transaction of this step: a transaction may last 5 seconds while another writer waits. Do slow work " +
  "(calls to other services, starts of other runs) in a separate step, before the transaction.";

export class GuardedTransaction {
  readonly handle: LibsqlTransactionHandle;
  readonly #serverTransaction: ServerTransaction;
  readonly #guard: TransactionGuard;
  #lastCall: Promise<unknown> = Promise.resolve();

  constructor(serverTransaction: ServerTransaction, guard: TransactionGuard) {
    this.#serverTransaction = serverTransaction;
    this.#guard = guard;
    this.handle = this.#createHandle();
  }

  /** Resolves when all calls of user code have been answered, including those that it does not await. */
  async waitForCalls(): Promise<void> {
    await this.#lastCall;
  }

  #createHandle(): LibsqlTransactionHandle {
    const { transaction } = this.#serverTransaction;
    const guard = this.#guard;
    const execute = async (userStatement: UserStatement, args?: unknown): Promise<Result> => {
      const [statement] = this.#toAllowedStatements([
        args === undefined ? userStatement : [userStatement as string, args],
      ]);
      return this.#sendInOrder(() => transaction.execute(statement as Statement));
    };
    const refuseControl = (sql: string) => () =>
      ignoreUnhandledRejection(Promise.resolve().then(() => guard.assertAllowed(sql)));
    return Object.assign(
      {
        execute: (userStatement: UserStatement, args?: unknown) =>
          ignoreUnhandledRejection(execute(userStatement, args)),
        batch: (userStatements: readonly UserStatement[]) =>
          ignoreUnhandledRejection(
            Promise.resolve().then(() => {
              const statements = this.#toAllowedStatements(userStatements);
              return this.#sendInOrder(() => transaction.batch(statements));
            }),
          ),
        executeMultiple: (sql: string) =>
          ignoreUnhandledRejection(
            Promise.resolve().then(() => {
              guard.assertAllowed(String(sql));
              return this.#sendInOrder(() => transaction.executeMultiple(sql));
            }),
          ),
        query: (sql: string, values: readonly unknown[] = []) =>
          ignoreUnhandledRejection(execute([sql, values]).then((result) => result.rows)),
        get closed() {
          return guard.hasEnded;
        },
      },
      // The library's interface has these methods, but Pawl ends the transaction.
      { commit: refuseControl("COMMIT"), rollback: refuseControl("ROLLBACK"), close: () => {} },
    );
  }

  #toAllowedStatements(userStatements: readonly UserStatement[]): Statement[] {
    return userStatements.map((userStatement) => {
      const statement = toStatement(userStatement);
      this.#guard.assertAllowed(statement.sql);
      return statement;
    });
  }

  #sendInOrder<T>(send: () => Promise<T>): Promise<T> {
    const call = this.#lastCall.then(() => this.#send(send));
    this.#lastCall = call.catch(() => {});
    return this.#guard.track(call);
  }

  async #send<T>(send: () => Promise<T>): Promise<T> {
    this.#guard.assertNotBroken();
    try {
      return await this.#serverTransaction.withDeadline(send());
    } catch (error) {
      await this.#checkTransactionAfter(error);
      throw error;
    }
  }

  /** After an error, checks whether the transaction is still open or the server has rolled it back. */
  async #checkTransactionAfter(error: unknown): Promise<void> {
    if (isTransactionTimeout(error)) throw this.#guard.markBroken(transactionTimeoutMessage, error);
    if (isConnectionLost(error) || !(await this.#isOpen())) {
      this.#guard.markBroken(
        "A statement of this step failed, and the server has rolled the whole transaction back, so the step cannot continue after catching the error. Let it throw: the step will be tried again.",
        error,
      );
    } else if (this.#guard.hasEnded) {
      this.#guard.markBroken("A statement that this step did not await has failed.", error);
    }
  }

  /** Tests with BEGIN, which fails and changes nothing inside an open transaction. */
  async #isOpen(): Promise<boolean> {
    const { transaction, withDeadline } = this.#serverTransaction;
    return withDeadline(transaction.batch([{ sql: "BEGIN", args: [] }])).then(
      () => false,
      (error: Error) => /within a transaction/.test(error.message),
    );
  }
}

function toStatement(userStatement: UserStatement): Statement {
  if (typeof userStatement === "string") return { sql: userStatement, args: [] };
  const [sql, args = []] = Array.isArray(userStatement)
    ? (userStatement as readonly [string, unknown])
    : [(userStatement as { sql: string }).sql, (userStatement as { args?: unknown }).args];
  if (typeof sql !== "string") {
    throw new TransactionError("A statement must be a string, { sql, args } or [sql, args].");
  }
  // Named values are passed to the driver unchanged.
  return { sql, args: Array.isArray(args) ? (args as Value[]).map(toSendable) : (args as readonly Value[]) };
}

/** The promise still rejects for user code that awaits it; without an await, the rejection must not end the process. */
function ignoreUnhandledRejection<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => {});
  return promise;
}
