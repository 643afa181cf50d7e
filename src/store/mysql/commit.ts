/** A batch in one transaction of two packets: look (look.ts), then write (writes.ts) and COMMIT. */
import { StoreError } from "../../core/errors.js";
import type { Batch, CommitResult, Refusal } from "../store.js";
import { look, refusalOf } from "./look.js";
import type { Transaction } from "./session.js";
import { sql } from "./sql.js";
import { birthStatements, makeWhatCanBeMade, savepoint, toSavepoint } from "./starts.js";
import { isDuplicateKey } from "./trouble.js";
import { writeStatements } from "./writes.js";

/** Commits or rolls back before it returns; when it throws, the caller rolls back. */
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
  const { statements, kept } = writeStatements(batch, seen, new Set(children.map(({ id }) => id)));
  const births = birthStatements([...children, ...starts], { at, fence });
  let refused: readonly Refusal[] = [];
  if (births.length > 0) {
    try {
      await transaction.commit([savepoint, ...births, ...statements]);
      return { kind: "committed", at, kept, mailed: [], refused };
    } catch (error) {
      if (!isDuplicateKey(error)) throw error;
      // A key or an id is taken. Only now is it worth finding out which.
      await transaction.run([toSavepoint]);
      refused = await makeWhatCanBeMade(transaction, { children, starts }, { at, fence });
    }
  }
  try {
    await transaction.commit(statements);
    return { kind: "committed", at, kept, mailed: [], refused };
  } catch (error) {
    if (!isDuplicateKey(error)) throw error;
    return conflictOf(transaction, batch, now, error);
  }
}

/** An event's number was taken between look and write: by our own earlier attempt, whose answer was lost. */
async function conflictOf(transaction: Transaction, batch: Batch, now: string, cause: unknown): Promise<CommitResult> {
  // First undone, or what of the batch was inserted before would be seen as somebody else's.
  await transaction.run([sql("ROLLBACK")]);
  const refusal = refusalOf(batch, await look(transaction, batch, now));
  await transaction.rollback();
  if (refusal !== null) return refusal;
  throw new StoreError("The commit met a duplicate key that is gone again.", { transient: true, cause });
}
