/**
 * The `tx` of a transactional step: a mysql2 connection whose calls the transaction's guard checks first.
 *
 * The handle sends a statement only after the server has answered the preceding one and reported an open transaction:
 * once a deadlock or a procedure has ended the transaction, the next statement would commit by itself.
 */
import { TransactionError } from "../../core/errors/errors.js";
import type { TransactionGuard } from "../shared/transaction-guard.js";
import type { PooledConnection } from "./connection-pool.js";

/** The methods of mysql2's promise connections that send SQL. */
interface SqlMethods {
  query(...args: unknown[]): Promise<unknown>;
  execute(...args: unknown[]): Promise<unknown>;
  prepare(...args: unknown[]): Promise<{ execute(...args: unknown[]): Promise<unknown>; close(): Promise<unknown> }>;
}

export class GuardedConnection {
  readonly handle: object;
  readonly #connection: PooledConnection;
  readonly #guard: TransactionGuard;
  #lastCall: Promise<unknown> = Promise.resolve();
  #isDisconnected = false;
  /** Rejects when the connection is closed, because the driver does not reject every kind of pending call. */
  readonly #untilDisconnected: Promise<never>;
  #rejectPending: (error: unknown) => void = () => {};

  constructor(connection: PooledConnection, guard: TransactionGuard) {
    this.#connection = connection;
    this.#guard = guard;
    this.#untilDisconnected = ignoreUnhandledRejection(
      new Promise<never>((_, reject) => {
        this.#rejectPending = reject;
      }),
    );
    this.handle = this.#createHandle();
  }

  /** Resolves when all calls of user code have been answered, including those that it does not await. */
  async waitForCalls(): Promise<void> {
    await this.#lastCall;
  }

  /** Rejects the calls in flight and prevents further ones from being sent. */
  disconnect(): void {
    this.#isDisconnected = true;
    this.#rejectPending(new TransactionError("The transaction was rolled back while this statement was running."));
  }

  #createHandle(): object {
    const { driver } = this.#connection;
    const calls = driver as unknown as SqlMethods;
    const controlMethod = (name: string, sql: string) =>
      [name, () => ignoreUnhandledRejection(this.#callIfAllowed(sql, async () => {}))] as const;
    const refusedMethod = (name: string) =>
      [name, () => ignoreUnhandledRejection(Promise.reject(methodNotAllowedError(name)))] as const;
    const overrides: Record<string | symbol, unknown> = {
      query: (...args: unknown[]) =>
        ignoreUnhandledRejection(this.#callIfAllowed(sqlTextOf(args[0]), () => calls.query(...args))),
      execute: (...args: unknown[]) =>
        ignoreUnhandledRejection(this.#callIfAllowed(sqlTextOf(args[0]), () => calls.execute(...args))),
      prepare: (...args: unknown[]) => ignoreUnhandledRejection(this.#prepare(calls, args)),
      ...Object.fromEntries([
        controlMethod("beginTransaction", "START TRANSACTION"),
        controlMethod("commit", "COMMIT"),
        controlMethod("rollback", "ROLLBACK"),
      ]),
      ...Object.fromEntries(["end", "reset", "changeUser", "connect"].map(refusedMethod)),
      // Libraries that expect a pooled connection call these methods when they have finished; Pawl itself releases the
      // connection after the step.
      release: () => {},
      destroy: () => {},
      [Symbol.asyncDispose]: async () => {},
      // The low-level connection would bypass the guard.
      connection: undefined,
    };
    // Properties that user code assigns stay on this object and do not reach the pooled connection.
    return new Proxy(Object.assign(Object.create(driver) as object, overrides), {
      get(target, name) {
        if (Object.hasOwn(target, name)) return Reflect.get(target, name);
        const value: unknown = Reflect.get(driver, name, driver);
        return typeof value === "function" ? value.bind(driver) : value;
      },
    });
  }

  async #callIfAllowed<T>(text: string, send: () => Promise<T>): Promise<T> {
    this.#guard.assertAllowed(text);
    return this.#call(send);
  }

  async #prepare(calls: SqlMethods, args: unknown[]): Promise<object> {
    const statement = await this.#callIfAllowed(sqlTextOf(args[0]), () => calls.prepare(...args));
    const execute = async (...values: unknown[]) => {
      this.#guard.assertUsable();
      return this.#call(() => statement.execute(...values));
    };
    return {
      execute: (...values: unknown[]) => ignoreUnhandledRejection(execute(...values)),
      close: async () => {
        if (!this.#guard.hasEnded) await statement.close();
      },
    };
  }

  #call<T>(send: () => Promise<T>): Promise<T> {
    const call = Promise.race([this.#lastCall.then(() => this.#send(send)), this.#untilDisconnected]);
    this.#lastCall = call.catch(() => {});
    return this.#guard.track(call);
  }

  async #send<T>(send: () => Promise<T>): Promise<T> {
    if (this.#isDisconnected) this.#guard.assertUsable();
    this.#guard.assertNotBroken();
    let answer: T;
    try {
      answer = await send();
    } catch (error) {
      await this.#checkTransactionAfter(error);
      throw error;
    }
    if (hasEndedTransaction(answer))
      throw this.#guard.markBroken("A statement of this step has ended the step's transaction.");
    return answer;
  }

  /** An error may have ended the transaction (a deadlock) or only failed its own statement (a duplicate key). */
  async #checkTransactionAfter(error: unknown): Promise<void> {
    const answer = await this.#connection.query("DO 0").catch(() => null);
    if (answer === null || hasEndedTransaction(answer)) {
      this.#guard.markBroken(
        "A statement of this step failed, and the server has rolled the whole transaction back, so the step cannot continue after catching the error. Let it throw: the step will be tried again.",
        error,
      );
    } else if (this.#guard.hasEnded) {
      this.#guard.markBroken("A statement that this step did not await has failed.", error);
    }
  }
}

/** The promise still rejects for user code that awaits it; without an await, the rejection must not end the process. */
function ignoreUnhandledRejection<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => {});
  return promise;
}

const methodNotAllowedError = (name: string) =>
  new TransactionError(`tx.${name}() is not allowed in a transactional step: Pawl manages its connection.`);

function sqlTextOf(query: unknown): string {
  const text = typeof query === "string" ? query : (query as { readonly sql?: unknown } | null | undefined)?.sql;
  // The driver itself refuses a query without text.
  return typeof text === "string" ? text : "";
}

const inTransactionFlag = 1;

/** Every result without rows has a flag for an open transaction; the results of a procedure end with such a result. */
function hasEndedTransaction(answer: unknown): boolean {
  const [result] = Array.isArray(answer) ? (answer as unknown[]) : [];
  // Rows are a list of objects; the results of a procedure are a list of such lists with one object at its end.
  const isProcedureResult = Array.isArray(result) && result.some(Array.isArray);
  const header: unknown = isProcedureResult ? result.at(-1) : result;
  if (header === null || typeof header !== "object" || !("serverStatus" in header)) return false;
  return (Number(header.serverStatus) & inTransactionFlag) === 0;
}
