/** Sends messages outside of a commit. */

import type { Message, SeenRun } from "../contract/store.js";
import { taskState } from "../sql/records.js";
import { selectLastSeq } from "./commit-snapshot.js";
import type { Database } from "./database.js";
import type { Session } from "./session.js";
import { forcePrimaryKey, placeholders, sql } from "./sql.js";
import { messageStatements } from "./write-statements.js";

export async function sendMessages(
  db: Database,
  messages: readonly Message[],
  now: string,
  seen: SeenRun | null = null,
): Promise<string[]> {
  if (messages.length === 0) return [];
  return db.transaction(async (transaction) => {
    const { reachable, at } = await lockReceivers(transaction, messages, now);
    if (seen !== null) await keepSeenReceivers(transaction, reachable, seen);
    await transaction.commit(
      messageStatements(
        messages.filter(({ to }) => reachable.has(to)),
        at,
      ),
    );
    return messages.flatMap(({ to }) => (reachable.has(to) ? [] : to));
  });
}

/** Removes the receivers that are not as the sender has seen them. Their tasks are locked. */
async function keepSeenReceivers(session: Session, reachable: Set<string>, seen: SeenRun): Promise<void> {
  const ids = [...reachable];
  if (ids.length === 0) return;
  const columns = `t.run_id, t.pending_messages, (${selectLastSeq}) AS last_seq`;
  const [result] = await session.run([
    sql(`SELECT ${columns} FROM pawl_tasks t ${forcePrimaryKey} WHERE t.run_id IN (${placeholders(ids)})`, ids),
  ]);
  for (const row of result?.rows ?? []) {
    const isSameLog = seen.lastEvent === null || Number(row.last_seq ?? 0) === seen.lastEvent;
    if (Number(row.pending_messages) !== seen.pendingMessages || !isSameLog) reachable.delete(row.run_id as string);
  }
}

/** Locks the receivers' tasks first, so that messages to one run get their ids in the order of their commits. */
export async function lockReceivers(session: Session, messages: readonly Message[], now: string) {
  const ids = receiverIdsOf(messages);
  const selectTasks = `SELECT run_id FROM pawl_tasks ${forcePrimaryKey} WHERE run_id IN (${placeholders(ids)})`;
  const [tasks, clock] = await session.run([
    sql(`${selectTasks} ORDER BY run_id FOR UPDATE`, ids),
    sql(`SELECT ${now} AS at`),
  ]);
  const reachable = new Set(tasks?.rows.map((row) => row.run_id as string));
  return { reachable, at: Number(clock?.rows[0]?.at) };
}

/**
 * Finds the receivers that are parked and have not started. The query locks their tasks, so that the result stays valid
 * until the transaction ends.
 */
export async function findNotStartedReceivers(
  session: Session,
  messages: readonly Message[],
): Promise<ReadonlySet<string>> {
  const ids = receiverIdsOf(messages);
  const isNotStarted = `t.run_id IN (${placeholders(ids)}) AND t.state = ${taskState.parked} AND r.started_at IS NULL`;
  const [result] = await session.run([
    sql(
      `SELECT t.run_id FROM pawl_tasks t JOIN pawl_runs r ON r.id = t.run_id WHERE ${isNotStarted} LOCK IN SHARE MODE`,
      ids,
    ),
  ]);
  return new Set(result?.rows.map((row) => row.run_id as string));
}

const receiverIdsOf = (messages: readonly Message[]) => [...new Set(messages.map(({ to }) => to))].sort();
