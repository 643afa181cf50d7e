/** Commits a batch in one transaction of two packets: commit-snapshot.ts reads, write-statements.ts writes. */
import { StoreError } from "../../core/errors/errors.js";
import type { Batch, CommitResult } from "../contract/store.js";
import { readCommitSnapshot, refusalOf } from "./commit-snapshot.js";
import { isDuplicateKey } from "./errors.js";
import { applyKeyChange } from "./key-changes.js";
import type { Session, Transaction } from "./session.js";
import { insertRunStatements, startRunsWithFreeKeys, waitForKeysStatements } from "./starts.js";
import { rollbackToSavepoint, savepoint } from "./transaction-block.js";
import { writeStatements } from "./write-statements.js";

/** Commits or rolls back before it returns. When it throws, the caller rolls back and calls `readConflict`. */
export async function commitBatch(transaction: Transaction, batch: Batch, now: string): Promise<CommitResult> {
  const snapshot = await readCommitSnapshot(transaction, batch, now);
  const refusal = refusalOf(batch, snapshot);
  if (refusal !== null) {
    await transaction.rollback();
    return refusal;
  }
  const children = batch.transitions.flatMap(({ newChildren }) => newChildren);
  const { starts, fence, keyChange } = batch;
  const { at } = snapshot;
  const keyConflict = keyChange === undefined ? null : await applyKeyChange(transaction, keyChange, at);
  if (keyConflict !== null) {
    await transaction.rollback();
    return keyConflict;
  }
  const childIds = new Set(children.map(({ id }) => id));
  const { statements, notParked, ownedWithMessages } = writeStatements(batch, snapshot, childIds);
  const runInserts = insertRunStatements([...children, ...starts], { at, fence });
  if (runInserts.length > 0) {
    try {
      await transaction.commit([savepoint, ...waitForKeysStatements(starts), ...runInserts, ...statements]);
      return { kind: "committed", at, notParked, ownedWithMessages, refused: [] };
    } catch (error) {
      if (!isDuplicateKey(error)) throw error;
      // Another run has one of the ids or keys. Only in this case is the query that finds out which one worth its cost.
      await transaction.run([rollbackToSavepoint]);
      const { refused, endedIds } = await startRunsWithFreeKeys(transaction, { children, starts }, { at, fence });
      const [refusal] = keyChange === undefined ? [] : refused;
      if (refusal !== undefined) {
        await transaction.rollback();
        return { kind: "conflict", runId: refusal.existing.id };
      }
      // A child whose start is repeated may have ended: it has no task any more, so messages to it are dropped.
      const openChildIds = new Set([...childIds].filter((id) => !endedIds.has(id)));
      await transaction.commit(writeStatements(batch, snapshot, openChildIds).statements);
      return { kind: "committed", at, notParked, ownedWithMessages, refused };
    }
  }
  await transaction.commit(statements);
  return { kind: "committed", at, notParked, ownedWithMessages, refused: [] };
}

/**
 * Finds the conflict that caused a duplicate key: another commit has written an event with the same number between the
 * read and the write, perhaps an earlier attempt at the same batch whose answer was lost. Must run after the rollback,
 * because it would otherwise see the batch's own rows. Rethrows an error that is not a duplicate key.
 */
export async function readConflict(reader: Session, batch: Batch, now: string, error: unknown): Promise<CommitResult> {
  if (!isDuplicateKey(error) && !isDuplicateKey((error as { cause?: unknown }).cause ?? {})) throw error;
  const refusal = refusalOf(batch, await readCommitSnapshot(reader, batch, now));
  if (refusal !== null) return refusal;
  const message = "The commit failed with a duplicate key, but no other commit has written to its runs; try again.";
  throw new StoreError(message, { transient: true, cause: error });
}
