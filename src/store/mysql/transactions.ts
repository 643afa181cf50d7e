/** Transactions that are shared with user code: ours that they write in, and theirs that we write in. */
import { InvalidInputError } from "../../core/errors/errors.js";
import type {
  Batch,
  CommitResult,
  Mail,
  NewRun,
  Refusal,
  SentInTransaction,
  StoreTransaction,
} from "../contract/store.js";
import { savepoint, toSavepoint } from "./block.js";
import { commitIn, conflictOf } from "./commit.js";
import type { Database } from "./database.js";
import { lockAddressees, unbegunAddressees } from "./mail.js";
import { type Session, singly } from "./session.js";
import { sql, type Value } from "./sql.js";
import { birthStatements, makeWhatCanBeMade } from "./starts.js";
import { isDuplicateKey, toStoreError } from "./trouble.js";
import { mailStatements } from "./writes.js";

export async function begin(
  db: Database,
  now: () => string,
  onCommitted: (batch: Batch, result: CommitResult) => void,
): Promise<StoreTransaction> {
  const transaction = await db.beginForUser();
  const commit = async (batch: Batch): Promise<CommitResult> => {
    try {
      await transaction.takeBack();
      const result = await commitIn(transaction, batch, now());
      onCommitted(batch, result);
      return result;
    } catch (error) {
      await transaction.rollback();
      return conflictOf(db.reader, batch, now(), toStoreError(error, "The transaction was not committed"));
    }
  };
  return {
    handle: transaction.handle,
    commit: (batch) => db.untilDone(commit(batch)),
    rollback: (options) => db.untilDone(transaction.rollback(options)),
  };
}

/** Makes runs in a transaction that the caller began and will end. */
export async function startIn(
  tx: unknown,
  starts: readonly NewRun[],
  now: string,
): Promise<{ readonly at: number; readonly refused: readonly Refusal[] }> {
  const session = sessionOf(tx);
  try {
    const [clock] = await session.run([sql(`SELECT ${now} AS at`)]);
    const place = { at: Number(clock?.rows[0]?.at), fence: null };
    try {
      await session.run([savepoint, ...birthStatements(starts, place)]);
      return { at: place.at, refused: [] };
    } catch (error) {
      if (!isDuplicateKey(error)) throw error;
      await session.run([toSavepoint]);
      return { at: place.at, refused: await makeWhatCanBeMade(session, { children: [], starts }, place) };
    }
  } catch (error) {
    throw toStoreError(error, "The runs were not started in the transaction");
  }
}

/** Sends messages in a transaction that the caller began and will end. */
export async function sendIn(tx: unknown, mail: readonly Mail[], now: string): Promise<SentInTransaction> {
  const session = sessionOf(tx);
  try {
    const { reachable, at } = await lockAddressees(session, mail, now);
    const unbegun = await unbegunAddressees(session, mail);
    const deliverable = mail.filter(({ to }) => reachable.has(to) && !unbegun.has(to));
    if (deliverable.length > 0) await session.run(mailStatements(deliverable, at));
    return { undeliverable: mail.flatMap(({ to }) => (reachable.has(to) ? [] : to)), unbegun: [...unbegun] };
  } catch (error) {
    throw toStoreError(error, "The messages were not sent in the transaction");
  }
}

interface Queries {
  query(text: string, values: readonly Value[]): Promise<unknown>;
  promise?(): Queries;
  getConnection?: unknown;
}

/** A mysql2 connection with promises or callbacks, or anything with `query(sql, params)` that answers rows or [rows]. */
function sessionOf(tx: unknown): Session {
  const given = tx as Queries | null | undefined;
  if (typeof given?.query !== "function") {
    throw new InvalidInputError("`tx` must be a mysql2 connection, or have a method query(sql, params).");
  }
  if (given.getConnection !== undefined) {
    throw new InvalidInputError(
      "`tx` is a pool: each statement may go to another connection. Pass one connection of it.",
    );
  }
  const queries = typeof given.promise === "function" ? given.promise() : given;
  return singly((text, values) => queries.query(text, values));
}
