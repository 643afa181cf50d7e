/** A batch in one transaction of two packets: look (look.ts), then write (writes.ts) and COMMIT. */
import { StoreError } from "../../core/errors/errors.js";
import type { Batch, CommitResult, RefusedStart } from "../contract/store.js";
import { readCommitSnapshot, refusalOf } from "./commit-snapshot.js";
import { isDuplicateKey } from "./errors.js";
import type { Session, Transaction } from "./session.js";
import { insertRunStatements, startRunsWithFreeKeys } from "./starts.js";
import { rollbackToSavepoint, savepoint } from "./transaction-block.js";
import { writeStatements } from "./write-statements.js";

/** Commits or rolls back before it returns; when it throws, the caller rolls back, and asks `conflictOf`. */
export async function commitBatch(transaction: Transaction, batch: Batch, now: string): Promise<CommitResult> {
  const snapshot = await readCommitSnapshot(transaction, batch, now);
  const refusal = refusalOf(batch, snapshot);
  if (refusal !== null) {
    await transaction.rollback();
    return refusal;
  }
  const children = batch.transitions.flatMap(({ newChildren }) => newChildren);
  const { starts, fence } = batch;
  const { at } = snapshot;
  const {
    statements,
    kept: notParked,
    runsWithMessages: ownedWithMessages,
  } = writeStatements(batch, snapshot, new Set(children.map(({ id }) => id)));
  const runInserts = insertRunStatements([...children, ...starts], { at, fence });
  let refused: readonly RefusedStart[] = [];
  if (runInserts.length > 0) {
    try {
      await transaction.commit([savepoint, ...runInserts, ...statements]);
      return { kind: "committed", at, notParked, ownedWithMessages, refused };
    } catch (error) {
      if (!isDuplicateKey(error)) throw error;
      // A key or an id is taken. Only now is it worth finding out which.
      await transaction.run([rollbackToSavepoint]);
      refused = await startRunsWithFreeKeys(transaction, { children, starts }, { at, fence });
    }
  }
  await transaction.commit(statements);
  return { kind: "committed", at, notParked, ownedWithMessages, refused };
}

/**
 * What a duplicate key means that has ended a commit: an event's number was taken between look and write, perhaps by our
 * own earlier attempt, whose answer was lost. Asked after the rollback, or the batch's own rows would be seen as another's.
 * Throws everything else.
 */
export async function readConflict(reader: Session, batch: Batch, now: string, error: unknown): Promise<CommitResult> {
  if (!isDuplicateKey(error) && !isDuplicateKey((error as { cause?: unknown }).cause ?? {})) throw error;
  const refusal = refusalOf(batch, await readCommitSnapshot(reader, batch, now));
  if (refusal !== null) return refusal;
  throw new StoreError("The commit met a duplicate key that is gone again.", { transient: true, cause: error });
}
