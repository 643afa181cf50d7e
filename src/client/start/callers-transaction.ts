/** What may be given as `tx`: one connection, on which the caller has begun a transaction. */
import { InvalidInputError } from "../../core/errors/errors.js";

const txRequirement = "`tx` takes the one connection on which you have begun your transaction";

/**
 * Each statement of a pool may go to another connection: the run would be started whatever became of the transaction.
 *
 * @param effect what would happen without one, such as "the run would be started"
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
    throw new InvalidInputError(`${txRequirement}; on this one none has begun, so ${effect} whatever became of it.`);
  if (isPool(tx))
    throw new InvalidInputError(`${txRequirement}, not a pool: begin one on a connection that you take from it.`);
}

const hasMethods = (value: object, ...names: readonly string[]) =>
  names.every((name) => typeof Reflect.get(value, name) === "function");

const canQuery = (tx: object) =>
  hasMethods(tx, "query") || hasMethods(tx, "prepare", "exec") || hasMethods(tx, "execute", "commit", "rollback");

/** Each of its statements commits by itself. */
const isLibsqlClient = (tx: unknown) =>
  typeof tx === "object" && tx !== null && hasMethods(tx, "execute", "batch", "transaction");

/** Of `mysql2`, which gives connections by that name, or of `pg`, which counts those that it has. */
const isPool = (tx: object) =>
  hasMethods(tx, "getConnection") || ("totalCount" in tx && "idleCount" in tx && !hasMethods(tx, "release"));

/** As far as the drivers tell: `pg`, `better-sqlite3`, `node:sqlite`. */
function hasNoTransaction(tx: {
  readonly getTransactionStatus?: () => unknown;
  readonly inTransaction?: unknown;
  readonly isTransaction?: unknown;
}): boolean {
  const pgStatus = typeof tx.getTransactionStatus === "function" ? tx.getTransactionStatus() : null;
  return pgStatus === "I" || tx.inTransaction === false || tx.isTransaction === false;
}
