/**
 * What a transactional step gets as `tx`: a mysql2 connection that obeys the guard of its transaction.
 *
 * Its statements are sent one after the other, each when the one before has been answered and the transaction was seen to
 * be still open: once a deadlock or a procedure has ended it, the next statement would commit by itself.
 */
import { TransactionError } from "../../core/errors/errors.js";
import type { TransactionGuard } from "../shared/transaction-guard.js";
import type { Connection } from "./connections.js";

/** The calls of mysql2's promise connections that send SQL. */
interface Calls {
  query(...args: unknown[]): Promise<unknown>;
  execute(...args: unknown[]): Promise<unknown>;
  prepare(...args: unknown[]): Promise<{ execute(...args: unknown[]): Promise<unknown>; close(): Promise<unknown> }>;
}

export class GuardedConnection {
  readonly handle: object;
  readonly #connection: Connection;
  readonly #guard: TransactionGuard;
  #last: Promise<unknown> = Promise.resolve();
  #isCut = false;
  /** Rejects what is under way when the connection is cut off: the driver does not do so for every kind of call. */
  readonly #untilCut: Promise<never>;
  #reject: (error: unknown) => void = () => {};

  constructor(connection: Connection, guard: TransactionGuard) {
    this.#connection = connection;
    this.#guard = guard;
    this.#untilCut = harmless(
      new Promise<never>((_, reject) => {
        this.#reject = reject;
      }),
    );
    this.handle = this.#facade();
  }

  /** Resolves when all that user code has asked for is answered, awaited or not. */
  async settled(): Promise<void> {
    await this.#last;
  }

  /** Calls that are under way get no answer, and those that have not been sent will not be. */
  cut(): void {
    this.#isCut = true;
    this.#reject(new TransactionError("The transaction was rolled back while this statement was under way."));
  }

  #facade(): object {
    const { driver } = this.#connection;
    const calls = driver as unknown as Calls;
    const controls = (name: string, sql: string) =>
      [name, () => harmless(this.#admitted(sql, async () => {}))] as const;
    const refused = (name: string) => [name, () => harmless(Promise.reject(notYours(name)))] as const;
    const own: Record<string | symbol, unknown> = {
      query: (...args: unknown[]) => harmless(this.#admitted(textOf(args[0]), () => calls.query(...args))),
      execute: (...args: unknown[]) => harmless(this.#admitted(textOf(args[0]), () => calls.execute(...args))),
      prepare: (...args: unknown[]) => harmless(this.#prepare(calls, args)),
      ...Object.fromEntries([
        controls("beginTransaction", "START TRANSACTION"),
        controls("commit", "COMMIT"),
        controls("rollback", "ROLLBACK"),
      ]),
      ...Object.fromEntries(["end", "reset", "changeUser", "connect"].map(refused)),
      // Libraries that think they took it from a pool call these when they have done their part.
      release: () => {},
      destroy: () => {},
      [Symbol.asyncDispose]: async () => {},
      // The protocol beneath, which would go past the guard.
      connection: undefined,
    };
    // What is assigned to it stays here, and does not go back to the pool with the connection.
    return new Proxy(Object.assign(Object.create(driver) as object, own), {
      get(target, name) {
        if (Object.hasOwn(target, name)) return Reflect.get(target, name);
        const value: unknown = Reflect.get(driver, name, driver);
        return typeof value === "function" ? value.bind(driver) : value;
      },
    });
  }

  async #admitted<T>(text: string, send: () => Promise<T>): Promise<T> {
    this.#guard.admit(text);
    return this.#call(send);
  }

  async #prepare(calls: Calls, args: unknown[]): Promise<object> {
    const statement = await this.#admitted(textOf(args[0]), () => calls.prepare(...args));
    const execute = async (...values: unknown[]) => {
      this.#guard.assertUsable();
      return this.#call(() => statement.execute(...values));
    };
    return {
      execute: (...values: unknown[]) => harmless(execute(...values)),
      close: async () => {
        if (!this.#guard.isOver) await statement.close();
      },
    };
  }

  #call<T>(send: () => Promise<T>): Promise<T> {
    const call = Promise.race([this.#last.then(() => this.#send(send)), this.#untilCut]);
    this.#last = call.catch(() => {});
    return this.#guard.track(call);
  }

  async #send<T>(send: () => Promise<T>): Promise<T> {
    if (this.#isCut) this.#guard.assertUsable();
    this.#guard.assertWhole();
    let answer: T;
    try {
      answer = await send();
    } catch (error) {
      await this.#lookAfter(error);
      throw error;
    }
    if (hasLeft(answer)) throw this.#guard.broke("A statement of this step has ended the step's transaction.");
    return answer;
  }

  /** An error may have ended the transaction (a deadlock), or only its own statement (a duplicate key). */
  async #lookAfter(error: unknown): Promise<void> {
    const answer = await this.#connection.ask("DO 0").catch(() => null);
    if (answer === null || hasLeft(answer)) {
      this.#guard.broke(
        "A statement of this step failed, and the server has rolled the whole transaction back, although the step caught the error. Let it throw: the step will be tried again.",
        error,
      );
    } else if (this.#guard.isOver) {
      this.#guard.broke("A statement that this step did not wait for has failed.", error);
    }
  }
}

/** Still rejects for those who wait for it; if user code does not, that is not to end the process. */
function harmless<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => {});
  return promise;
}

const notYours = (name: string) =>
  new TransactionError(`tx.${name}() is not allowed in a transactional step: its connection is Pawl's.`);

function textOf(what: unknown): string {
  const text = typeof what === "string" ? what : (what as { readonly sql?: unknown } | null | undefined)?.sql;
  // Refused by the driver, in its own words.
  return typeof text === "string" ? text : "";
}

const inTransaction = 1;

/** The server says with every answer but rows whether a transaction is open; a procedure's answer ends with such a one. */
function hasLeft(answer: unknown): boolean {
  const [result] = Array.isArray(answer) ? (answer as unknown[]) : [];
  // Rows are a list of objects, the answers of a procedure a list of such lists with one object at its end.
  const isOfProcedure = Array.isArray(result) && result.some(Array.isArray);
  const header: unknown = isOfProcedure ? result.at(-1) : result;
  if (header === null || typeof header !== "object" || !("serverStatus" in header)) return false;
  return (Number(header.serverStatus) & inTransaction) === 0;
}
