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
import type { Begun } from "./database.js";
import type { Result, Statement, Value } from "./driver.js";
import { isConnectionLost, isTimedOut } from "./errors.js";
import { sendable } from "./message.js";

type GivenStatement =
  | string
  | { readonly sql: string; readonly args?: unknown }
  | readonly [sql: string, args?: unknown];

/** The `tx` of a transactional step on a libSQL server. */
export interface LibsqlTransactionHandle {
  /** As in `@libsql/client`. */
  execute(statement: string | { readonly sql: string; readonly args?: unknown }, args?: unknown): Promise<Result>;
  /** As in `@libsql/client`: all in one round trip. */
  batch(statements: readonly GivenStatement[]): Promise<readonly Result[]>;
  /** Several statements in one text, without values. */
  executeMultiple(sql: string): Promise<void>;
  query(sql: string, values?: readonly unknown[]): Promise<readonly SqlRow[]>;
  readonly closed: boolean;
}

export const timedOut =
  "The server has ended the transaction of this step: it lets one last for 5 seconds while another waits to write. Do what takes long " +
  "(calls to other services, starts of other runs) in a step of its own, before the transaction.";

export class GuardedTransaction {
  readonly handle: LibsqlTransactionHandle;
  readonly #begun: Begun;
  readonly #guard: TransactionGuard;
  #last: Promise<unknown> = Promise.resolve();

  constructor(begun: Begun, guard: TransactionGuard) {
    this.#begun = begun;
    this.#guard = guard;
    this.handle = this.#facade();
  }

  /** Resolves when all that user code has asked for is answered, awaited or not. */
  async settled(): Promise<void> {
    await this.#last;
  }

  #facade(): LibsqlTransactionHandle {
    const { transaction } = this.#begun;
    const guard = this.#guard;
    const execute = async (given: GivenStatement, args?: unknown): Promise<Result> => {
      const [statement] = this.#admitted([args === undefined ? given : [given as string, args]]);
      return this.#call(() => transaction.execute(statement as Statement));
    };
    const control = (sql: string) => () => harmless(Promise.resolve().then(() => guard.admit(sql)));
    return Object.assign(
      {
        execute: (given: GivenStatement, args?: unknown) => harmless(execute(given, args)),
        batch: (given: readonly GivenStatement[]) =>
          harmless(
            Promise.resolve().then(() => {
              const statements = this.#admitted(given);
              return this.#call(() => transaction.batch(statements));
            }),
          ),
        executeMultiple: (sql: string) =>
          harmless(
            Promise.resolve().then(() => {
              guard.admit(String(sql));
              return this.#call(() => transaction.executeMultiple(sql));
            }),
          ),
        query: (sql: string, values: readonly unknown[] = []) =>
          harmless(execute([sql, values]).then((result) => result.rows)),
        get closed() {
          return guard.isOver;
        },
      },
      // Of the library's interface, but Pawl's to do.
      { commit: control("COMMIT"), rollback: control("ROLLBACK"), close: () => {} },
    );
  }

  #admitted(given: readonly GivenStatement[]): Statement[] {
    return given.map((one) => {
      const statement = asStatement(one);
      this.#guard.admit(statement.sql);
      return statement;
    });
  }

  #call<T>(send: () => Promise<T>): Promise<T> {
    const call = this.#last.then(() => this.#send(send));
    this.#last = call.catch(() => {});
    return this.#guard.track(call);
  }

  async #send<T>(send: () => Promise<T>): Promise<T> {
    this.#guard.assertWhole();
    try {
      return await this.#begun.watched(send());
    } catch (error) {
      await this.#lookAfter(error);
      throw error;
    }
  }

  /** An error may have ended the transaction, or only its own statement (a duplicate key). */
  async #lookAfter(error: unknown): Promise<void> {
    if (isTimedOut(error)) throw this.#guard.broke(timedOut, error);
    if (isConnectionLost(error) || !(await this.#isOpen())) {
      this.#guard.broke(
        "A statement of this step failed, and the server has rolled the whole transaction back, although the step caught the error. Let it throw: the step will be tried again.",
        error,
      );
    } else if (this.#guard.isOver) {
      this.#guard.broke("A statement that this step did not wait for has failed.", error);
    }
  }

  /** In a transaction, BEGIN is refused and changes nothing. */
  async #isOpen(): Promise<boolean> {
    const { transaction, watched } = this.#begun;
    return watched(transaction.batch([{ sql: "BEGIN", args: [] }])).then(
      () => false,
      (error: Error) => /within a transaction/.test(error.message),
    );
  }
}

function asStatement(given: GivenStatement): Statement {
  if (typeof given === "string") return { sql: given, args: [] };
  const [sql, args = []] = Array.isArray(given)
    ? (given as readonly [string, unknown])
    : [(given as { sql: string }).sql, (given as { args?: unknown }).args];
  if (typeof sql !== "string") throw new TransactionError("A statement is a text, or { sql, args }, or [sql, args].");
  // Values by name are the driver's to understand.
  return { sql, args: Array.isArray(args) ? (args as Value[]).map(sendable) : (args as readonly Value[]) };
}

/** Still rejects for those who wait for it; if user code does not, that must not end the process. */
function harmless<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => {});
  return promise;
}
