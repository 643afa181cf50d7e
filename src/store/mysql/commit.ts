/** A batch in one transaction of two packets: look (look.ts), then write (writes.ts) and COMMIT. */
import { StoreError } from "../../core/errors/errors.js";
import type { Batch, CommitResult, Refusal } from "../contract/store.js";
import { savepoint, toSavepoint } from "./block.js";
import { look, refusalOf } from "./look.js";
import type { Session, Transaction } from "./session.js";
import { birthStatements, makeWhatCanBeMade } from "./starts.js";
import { isDuplicateKey } from "./trouble.js";
import { writeStatements } from "./writes.js";

/** Commits or rolls back before it returns; when it throws, the caller rolls back, and asks `conflictOf`. */
export async function commitIn(transaction: Transaction, batch: Batch, now: string): Promise<CommitResult> {
  const seen = await look(transaction, batch, now);
  const refusal = refusalOf(batch, seen);
  if (refusal !== null) {
    await transaction.rollback();
    return refusal;
  }
  const children = batch.transitions.flatMap(({ starts }) => starts);
  const { starts, fence } = batch;
  const { at } = seen;
  const { statements, kept, mailed } = writeStatements(batch, seen, new Set(children.map(({ id }) => id)));
  const births = birthStatements([...children, ...starts], { at, fence });
  let refused: readonly Refusal[] = [];
  if (births.length > 0) {
    try {
      await transaction.commit([savepoint, ...births, ...statements]);
      return { kind: "committed", at, kept, mailed, refused };
    } catch (error) {
      if (!isDuplicateKey(error)) throw error;
      // A key or an id is taken. Only now is it worth finding out which.
      await transaction.run([toSavepoint]);
      refused = await makeWhatCanBeMade(transaction, { children, starts }, { at, fence });
    }
  }
  await transaction.commit(statements);
  return { kind: "committed", at, kept, mailed, refused };
}

/**
 * What a duplicate key means that has ended a commit: an event's number was taken between look and write, perhaps by our
 * own earlier attempt, whose answer was lost. Asked after the rollback, or the batch's own rows would be seen as another's.
 * Throws everything else.
 */
export async function conflictOf(reader: Session, batch: Batch, now: string, error: unknown): Promise<CommitResult> {
  if (!isDuplicateKey(error) && !isDuplicateKey((error as { cause?: unknown }).cause ?? {})) throw error;
  const refusal = refusalOf(batch, await look(reader, batch, now));
  if (refusal !== null) return refusal;
  throw new StoreError("The commit met a duplicate key that is gone again.", { transient: true, cause: error });
}
