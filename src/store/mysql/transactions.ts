/** Transactional steps, and starts and messages inside a transaction that the caller has opened. */
import { InvalidInputError } from "../../core/errors/errors.js";
import type {
  Batch,
  CommitResult,
  Message,
  NewRun,
  RefusedStart,
  SentInTransaction,
  StoreTransaction,
} from "../contract/store.js";
import { commitBatch, readConflict } from "./commit.js";
import type { Database } from "./database.js";
import { isDuplicateKey, toStoreError } from "./errors.js";
import { findNotStartedReceivers, lockReceivers } from "./messages.js";
import { createSingleStatementSession, type Session } from "./session.js";
import { sql, type Value } from "./sql.js";
import { insertRunStatements, startRunsWithFreeKeys } from "./starts.js";
import { rollbackToSavepoint, savepoint } from "./transaction-block.js";
import { messageStatements } from "./write-statements.js";

export async function beginTransaction(
  db: Database,
  now: () => string,
  onCommitted: (batch: Batch, result: CommitResult) => void,
): Promise<StoreTransaction> {
  const transaction = await db.beginUserTransaction();
  const commit = async (batch: Batch): Promise<CommitResult> => {
    try {
      await transaction.waitForUserCode();
      const result = await commitBatch(transaction, batch, now());
      onCommitted(batch, result);
      return result;
    } catch (error) {
      await transaction.rollback();
      return readConflict(db.reader, batch, now(), toStoreError(error, "The transaction was not committed"));
    }
  };
  return {
    handle: transaction.handle,
    commit: (batch) => db.trackUntilDone(commit(batch)),
    rollback: (options) => db.trackUntilDone(transaction.rollback(options)),
  };
}

/** Creates runs inside a transaction that the caller has begun and will end. */
export async function startInTransaction(
  tx: unknown,
  starts: readonly NewRun[],
  now: string,
): Promise<{ readonly at: number; readonly refused: readonly RefusedStart[] }> {
  const session = toSession(tx);
  try {
    const [clock] = await session.run([sql(`SELECT ${now} AS at`)]);
    const at = Number(clock?.rows[0]?.at);
    return { at, refused: await createRuns(session, starts, at) };
  } catch (error) {
    throw toStoreError(error, "The runs were not started in the transaction");
  }
}

/** Creates the runs whose keys are free, and returns the others. */
export async function createRuns(
  session: Session,
  starts: readonly NewRun[],
  at: number,
): Promise<readonly RefusedStart[]> {
  const context = { at, fence: null };
  try {
    await session.run([savepoint, ...insertRunStatements(starts, context)]);
    return [];
  } catch (error) {
    if (!isDuplicateKey(error)) throw error;
    await session.run([rollbackToSavepoint]);
    return (await startRunsWithFreeKeys(session, { children: [], starts }, context)).refused;
  }
}

/** Sends messages inside a transaction that the caller has begun and will end. */
export async function sendInTransaction(
  tx: unknown,
  messages: readonly Message[],
  now: string,
): Promise<SentInTransaction> {
  const session = toSession(tx);
  try {
    const { reachable, at } = await lockReceivers(session, messages, now);
    const notStarted = await findNotStartedReceivers(session, messages);
    const deliverable = messages.filter(({ to }) => reachable.has(to) && !notStarted.has(to));
    if (deliverable.length > 0) await session.run(messageStatements(deliverable, at));
    return { undeliverable: messages.flatMap(({ to }) => (reachable.has(to) ? [] : to)), notStarted: [...notStarted] };
  } catch (error) {
    throw toStoreError(error, "The messages were not sent in the transaction");
  }
}

interface QueryConnection {
  query(text: string, values: readonly Value[]): Promise<unknown>;
  promise?(): QueryConnection;
  getConnection?: unknown;
}

/** Accepts a mysql2 connection (promises or callbacks), or any object whose `query(sql, params)` returns rows. */
function toSession(tx: unknown): Session {
  const connection = tx as QueryConnection | null | undefined;
  if (typeof connection?.query !== "function") {
    throw new InvalidInputError("`tx` must be a mysql2 connection, or have a method query(sql, params).");
  }
  if (connection.getConnection !== undefined) {
    throw new InvalidInputError(
      "`tx` is a pool: each statement may go to another connection. Pass one connection of it.",
    );
  }
  const queries = typeof connection.promise === "function" ? connection.promise() : connection;
  return createSingleStatementSession((text, values) => queries.query(text, values));
}
