/**
 * What a transactional step gets as `tx`: a transaction of `@libsql/client` that obeys the guard of its transaction, and
 * `query(sql, values)`, which the handles of all SQL stores have.
 *
 * Its statements are sent one after the other, each when the one before has been answered: once the server has rolled the
 * transaction back, the next statement would commit by itself.
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
  /** As in `@libsql/client`. */
  execute(statement: string | { readonly sql: string; readonly args?: unknown }, args?: unknown): Promise<Result>;
  /** As in `@libsql/client`: all in one round trip. */
  batch(statements: readonly UserStatement[]): Promise<readonly Result[]>;
  /** Several statements in one text, without values. */
  executeMultiple(sql: string): Promise<void>;
  query(sql: string, values?: readonly unknown[]): Promise<readonly SqlRow[]>;
  readonly closed: boolean;
}

export const transactionTimeoutMessage =
  "The server has ended the transaction of this step: it lets one last for 5 seconds while another waits to write. Do what takes long " +
  "(calls to other services, starts of other runs) in a step of its own, before the transaction.";

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

  /** Resolves when all that user code has asked for is answered, awaited or not. */
  async waitForCalls(): Promise<void> {
    await this.#lastCall;
  }

  #createHandle(): LibsqlTransactionHandle {
    const { transaction } = this.#serverTransaction;
    const guard = this.#guard;
    const execute = async (userStatement: UserStatement, args?: unknown): Promise<Result> => {
      const [statement] = this.#admitStatements([args === undefined ? userStatement : [userStatement as string, args]]);
      return this.#call(() => transaction.execute(statement as Statement));
    };
    const control = (sql: string) => () =>
      ignoreUnhandledRejection(Promise.resolve().then(() => guard.assertAllowed(sql)));
    return Object.assign(
      {
        execute: (userStatement: UserStatement, args?: unknown) =>
          ignoreUnhandledRejection(execute(userStatement, args)),
        batch: (given: readonly UserStatement[]) =>
          ignoreUnhandledRejection(
            Promise.resolve().then(() => {
              const statements = this.#admitStatements(given);
              return this.#call(() => transaction.batch(statements));
            }),
          ),
        executeMultiple: (sql: string) =>
          ignoreUnhandledRejection(
            Promise.resolve().then(() => {
              guard.assertAllowed(String(sql));
              return this.#call(() => transaction.executeMultiple(sql));
            }),
          ),
        query: (sql: string, values: readonly unknown[] = []) =>
          ignoreUnhandledRejection(execute([sql, values]).then((result) => result.rows)),
        get closed() {
          return guard.hasEnded;
        },
      },
      // Of the library's interface, but Pawl's to do.
      { commit: control("COMMIT"), rollback: control("ROLLBACK"), close: () => {} },
    );
  }

  #admitStatements(userStatements: readonly UserStatement[]): Statement[] {
    return userStatements.map((one) => {
      const statement = toStatement(one);
      this.#guard.assertAllowed(statement.sql);
      return statement;
    });
  }

  #call<T>(send: () => Promise<T>): Promise<T> {
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

  /** An error may have ended the transaction, or only its own statement (a duplicate key). */
  async #checkTransactionAfter(error: unknown): Promise<void> {
    if (isTransactionTimeout(error)) throw this.#guard.markBroken(transactionTimeoutMessage, error);
    if (isConnectionLost(error) || !(await this.#isOpen())) {
      this.#guard.markBroken(
        "A statement of this step failed, and the server has rolled the whole transaction back, although the step caught the error. Let it throw: the step will be tried again.",
        error,
      );
    } else if (this.#guard.hasEnded) {
      this.#guard.markBroken("A statement that this step did not wait for has failed.", error);
    }
  }

  /** In a transaction, BEGIN is refused and changes nothing. */
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
  if (typeof sql !== "string") throw new TransactionError("A statement is a text, or { sql, args }, or [sql, args].");
  // Values by name are the driver's to understand.
  return { sql, args: Array.isArray(args) ? (args as Value[]).map(toSendable) : (args as readonly Value[]) };
}

/** Still rejects for those who wait for it; if user code does not, that must not end the process. */
function ignoreUnhandledRejection<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => {});
  return promise;
}
