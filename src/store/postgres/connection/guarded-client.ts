/**
 * The `tx` of a transactional step: a `pg` client whose queries are checked by the guard of the transaction. Other
 * members are those of the client, except members that would end the connection, release it or bypass the guard.
 */
import { TransactionError } from "../../../core/errors/errors.js";
import type { TransactionGuard } from "../../shared/transaction-guard.js";
import type { PgPoolClient } from "./driver.js";

type Callback = (error: Error | null, result?: unknown) => void;

export function createGuardedClient(client: PgPoolClient, guard: TransactionGuard): object {
  const forwardQuery = client.query.bind(client) as unknown as (...args: unknown[]) => unknown;

  const query = (...args: unknown[]): unknown => {
    const [queryArgument] = args;
    const callbackIndex = args.findIndex((arg) => typeof arg === "function");
    const callback = callbackIndex === -1 ? undefined : (args[callbackIndex] as Callback);
    try {
      guard.assertAllowed(textOf(queryArgument));
    } catch (error) {
      if (callback !== undefined) return void process.nextTick(callback, error);
      if (isSubmittable(queryArgument)) throw error;
      return ignoreUnhandledRejection(Promise.reject(error));
    }
    if (callback !== undefined) {
      const endCall = guard.beginCall();
      args[callbackIndex] = (...callbackArguments: Parameters<Callback>) => {
        endCall();
        callback(...callbackArguments);
      };
    }
    const result = forwardQuery(...args);
    return result instanceof Promise ? ignoreUnhandledRejection(guard.track(result)) : result;
  };

  const refuse = (name: string) => () => {
    throw new TransactionError(`tx.${name}() is not allowed in a transactional step: its connection is Pawl's.`);
  };
  const overrides: Record<string | symbol, unknown> = {
    query,
    // Libraries that assume the client comes from a pool call this when they are done.
    release: () => {},
    end: refuse("end"),
    connect: refuse("connect"),
    // Once this transaction has ended, the connection may be in another transaction with another status.
    getTransactionStatus: () => (guard.hasEnded ? null : (client.getTransactionStatus?.() ?? null)),
    // Access to the protocol would bypass the guard.
    connection: undefined,
  };

  // Properties that are assigned to `tx` are set on this object, so that they do not go back to the pool with the
  // client.
  return new Proxy(Object.assign(Object.create(client) as object, overrides), {
    get(target, name) {
      if (Object.hasOwn(target, name)) return Reflect.get(target, name);
      const value: unknown = Reflect.get(client, name, client);
      return typeof value === "function" ? value.bind(client) : value;
    },
  });
}

/** The promise still rejects, but if user code does not await it, the rejection does not end the process. */
function ignoreUnhandledRejection(promise: Promise<unknown>): Promise<unknown> {
  promise.catch(() => {});
  return promise;
}

const isSubmittable = (queryArgument: unknown): boolean =>
  typeof (queryArgument as { submit?: unknown } | null)?.submit === "function";

/** The SQL of a text, a config object, a `pg.Query`, a cursor of pg-cursor or a stream of pg-query-stream. */
function textOf(queryArgument: unknown): string {
  if (typeof queryArgument === "string") return queryArgument;
  const { text, cursor } = (queryArgument ?? {}) as {
    readonly text?: unknown;
    readonly cursor?: { readonly text?: unknown };
  };
  const sql = text ?? cursor?.text;
  if (typeof sql === "string") return sql;
  throw new TransactionError("tx.query takes SQL as a text, as { text, values }, or an object with a `text`.");
}
