/**
 * Several statements of a transaction in one packet, in a form that cannot be applied by halves.
 *
 * Statements that are merely joined by semicolons can: when another node of a Galera cluster aborts the transaction
 * between two of them, those behind may be carried out on their own, or the COMMIT succeeds although nothing is left to be
 * committed (of 2,000 transactions under contention 10 were halves, and 9 were acknowledged and not there). A block ends at
 * the first error, and its handler has rolled everything back before the client hears of it (none of 40,000). It costs about
 * 0.05 ms. MySQL has no blocks outside of stored programs, so there every statement is sent by itself, when the one before
 * it has been answered.
 */
import { sql } from "./sql.js";

export const begin = sql("START TRANSACTION");
export const commit = sql("COMMIT");
export const rollback = sql("ROLLBACK");

/** Made when a transaction of user code begins; released before anything is recorded, which fails if it is another one. */
export const proofSavepoint = sql("SAVEPOINT pawl_proof");
export const releaseProofSavepoint = sql("RELEASE SAVEPOINT pawl_proof");

/** Before births, whose keys may be taken: what came before them in the transaction stays. */
export const savepoint = sql("SAVEPOINT pawl");
export const rollbackToSavepoint = sql("ROLLBACK TO SAVEPOINT pawl");

export interface BlockOptions {
  /** The block continues a transaction: one that the server has rolled back since is reported as a deadlock. */
  readonly continuesTransaction: boolean;
  /** A duplicate key takes the transaction back to the savepoint, where it goes on; without this it ends everything. */
  readonly hasSavepoint: boolean;
}

const rollbackHandler = "DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; RESIGNAL; END; ";
const duplicateKeyHandler = `DECLARE EXIT HANDLER FOR 1062 BEGIN ${rollbackToSavepoint.text}; RESIGNAL; END; `;
const assertTransactionOpen =
  "IF NOT @@in_transaction THEN SIGNAL SQLSTATE '40001' SET MYSQL_ERRNO = 1213, " +
  "MESSAGE_TEXT = 'The server has rolled the transaction back'; END IF; ";

/** Room for what a block adds to its statements, in bytes. */
export const blockOverheadBytes = 512;

export function buildBlock(
  statements: readonly string[],
  { continuesTransaction, hasSavepoint }: BlockOptions,
): string {
  const handlers = hasSavepoint ? rollbackHandler + duplicateKeyHandler : rollbackHandler;
  return `BEGIN NOT ATOMIC ${handlers}${continuesTransaction ? assertTransactionOpen : ""}${statements.join(";")}; END`;
}
