/** Checks the option `tx`: one connection on which the caller has begun a transaction. */
import { InvalidInputError } from "../../core/errors/errors.js";

const txRequirement = "`tx` takes the one connection on which you have begun your transaction";

/**
 * Refuses a value that cannot run statements in the caller's transaction. A pool, for example, may run each statement on
 * another connection, outside of the transaction.
 *
 * @param effect what would happen without a transaction, such as "the run would be started"
 */
export function checkTransaction(tx: unknown, effect: string): void {
  if (isLibsqlClient(tx))
    throw new InvalidInputError(
      `${txRequirement}, not a client of @libsql/client: pass what its method transaction() gives.`,
    );
  if ((typeof tx !== "object" && typeof tx !== "function") || tx === null || !canQuery(tx))
    throw new InvalidInputError(
      `${txRequirement}: a \`pg\` client, a \`mysql2\` connection, a \`better-sqlite3\` database, a transaction of \`@libsql/client\`, or { query(sql, params) }.`,
    );
  if (hasNoTransaction(tx))
    throw new InvalidInputError(
      `${txRequirement}; this connection has no open transaction, so ${effect} at once. Begin a transaction first.`,
    );
  if (isPool(tx))
    throw new InvalidInputError(`${txRequirement}, not a pool: begin it on a connection that you take from the pool.`);
}

const hasMethods = (value: object, ...names: readonly string[]) =>
  names.every((name) => typeof Reflect.get(value, name) === "function");

const canQuery = (tx: object) =>
  hasMethods(tx, "query") || hasMethods(tx, "prepare", "exec") || hasMethods(tx, "execute", "commit", "rollback");

/** Whether the value is a client of `@libsql/client`, which commits each statement by itself. */
const isLibsqlClient = (tx: unknown) =>
  typeof tx === "object" && tx !== null && hasMethods(tx, "execute", "batch", "transaction");

/** Whether the value is a pool of `mysql2`, which has `getConnection`, or of `pg`, which counts its connections. */
const isPool = (tx: object) =>
  hasMethods(tx, "getConnection") || ("totalCount" in tx && "idleCount" in tx && !hasMethods(tx, "release"));

/**
 * Whether the connection says that it has no open transaction. Only `pg`, `better-sqlite3` and `node:sqlite` say so; for
 * other drivers the result is false.
 */
function hasNoTransaction(tx: {
  readonly getTransactionStatus?: () => unknown;
  readonly inTransaction?: unknown;
  readonly isTransaction?: unknown;
}): boolean {
  const pgStatus = typeof tx.getTransactionStatus === "function" ? tx.getTransactionStatus() : null;
  return pgStatus === "I" || tx.inTransaction === false || tx.isTransaction === false;
}
