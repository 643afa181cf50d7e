/**
 * What a transactional step gets as `tx`: a `pg` client that obeys the guard of its transaction. Everything else that a
 * client can do is passed on; what ends or frees the connection is not the step's to do.
 */
import { TransactionError } from "../../../core/errors/errors.js";
import type { TransactionGuard } from "../../shared/transaction-guard.js";
import type { PgPoolClient } from "./driver.js";

type Callback = (error: Error | null, result?: unknown) => void;

export function guardedClient(client: PgPoolClient, guard: TransactionGuard): object {
  const passOn = client.query.bind(client) as unknown as (...args: unknown[]) => unknown;

  const query = (...args: unknown[]): unknown => {
    const [what] = args;
    const position = args.findIndex((arg) => typeof arg === "function");
    const callback = position === -1 ? undefined : (args[position] as Callback);
    try {
      guard.admit(textOf(what));
    } catch (error) {
      if (callback !== undefined) return void process.nextTick(callback, error);
      if (isSubmittable(what)) throw error;
      return harmless(Promise.reject(error));
    }
    if (callback !== undefined) {
      const leave = guard.enter();
      args[position] = (...answer: Parameters<Callback>) => {
        leave();
        callback(...answer);
      };
    }
    const result = passOn(...args);
    return result instanceof Promise ? harmless(guard.track(result)) : result;
  };

  const refuse = (name: string) => () => {
    throw new TransactionError(`tx.${name}() is not allowed in a transactional step: its connection is Pawl's.`);
  };
  const own: Record<string | symbol, unknown> = {
    query,
    // Libraries that think they took it from a pool call this when they have done their part.
    release: () => {},
    end: refuse("end"),
    connect: refuse("connect"),
    // Of another transaction, when this one has ended.
    getTransactionStatus: () => (guard.isOver ? null : (client.getTransactionStatus?.() ?? null)),
    // The protocol beneath, which would go past the guard.
    connection: undefined,
  };

  // What is assigned to it stays here, and does not go back to the pool with the client.
  return new Proxy(Object.assign(Object.create(client) as object, own), {
    get(target, name) {
      if (Object.hasOwn(target, name)) return Reflect.get(target, name);
      const value: unknown = Reflect.get(client, name, client);
      return typeof value === "function" ? value.bind(client) : value;
    },
  });
}

/** Still rejects for those who wait for it; if user code does not, that is not to end the process. */
function harmless(promise: Promise<unknown>): Promise<unknown> {
  promise.catch(() => {});
  return promise;
}

const isSubmittable = (what: unknown): boolean => typeof (what as { submit?: unknown } | null)?.submit === "function";

/** Of a text, a config, a `pg.Query`, a cursor of pg-cursor or a stream of pg-query-stream. */
function textOf(what: unknown): string {
  if (typeof what === "string") return what;
  const { text, cursor } = (what ?? {}) as { readonly text?: unknown; readonly cursor?: { readonly text?: unknown } };
  const found = text ?? cursor?.text;
  if (typeof found === "string") return found;
  throw new TransactionError("tx.query takes SQL as a text, as { text, values }, or an object with a `text`.");
}
