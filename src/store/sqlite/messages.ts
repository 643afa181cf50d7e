/** Messages to runs. */

import type { Message, SentInTransaction } from "../contract/store.js";
import type { Queryable } from "../sql/dialect.js";
import { taskState } from "../sql/records.js";
import type { Connection } from "./connection.js";

/** A parked addressee is ready at once; one that is owned stays where it is, its owner will look. */
export const incrementMessageCount = `UPDATE pawl_tasks SET pending_messages = pending_messages + 1,
  due_at = CASE state WHEN ${taskState.parked} THEN ? ELSE due_at END,
  state = CASE state WHEN ${taskState.parked} THEN ${taskState.ready} ELSE state END
  WHERE run_id = ?`;

const selectTask = `SELECT t.state, r.started_at FROM pawl_tasks t JOIN pawl_runs r ON r.id = t.run_id WHERE t.run_id = ?`;

export const insertMessageInto = "INSERT INTO pawl_inbox (run_id, kind, data, at)";
const insertMessage = `${insertMessageInto} VALUES (?, ?, ?, ?)`;
const deleteMessage = "DELETE FROM pawl_inbox WHERE id = ? AND run_id = ?";
const decrementMessageCount =
  "UPDATE pawl_tasks SET pending_messages = pending_messages - ? WHERE run_id = ? RETURNING pending_messages";

export const releaseTask = `UPDATE pawl_tasks SET state = ${taskState.ready}, due_at = ?
  WHERE run_id = ? AND state = ${taskState.parked}`;

/** Gives back the addressees that have no task. */
export function deliverMessages(db: Connection, messages: readonly Message[], at: number): string[] {
  const undeliverable: string[] = [];
  for (const { to, kind, data } of messages) {
    if (db.run(incrementMessageCount, at, to) === 1) db.run(insertMessage, to, kind, data, at);
    else undeliverable.push(to);
  }
  return undeliverable;
}

/** The same over a transaction that is not ours. A run that is parked and has not begun must not begin because of a message. */
export async function deliverMessagesAsync(
  db: Queryable,
  messages: readonly Message[],
  at: number,
): Promise<SentInTransaction> {
  const undeliverable: string[] = [];
  const notStarted: string[] = [];
  for (const { to, kind, data } of messages) {
    const [task] = await db.query(selectTask, [to]);
    if (task === undefined) undeliverable.push(to);
    else if (task.state === taskState.parked && task.started_at === null) notStarted.push(to);
    else {
      await db.query(incrementMessageCount, [at, to]);
      await db.query(insertMessage, [to, kind, data, at]);
    }
  }
  return { undeliverable, notStarted };
}

/** Whether messages are left; null: none was there to be drained, so it is not known. */
export function drainMessages(db: Connection, runId: string, ids: readonly number[]): boolean | null {
  let drained = 0;
  for (const id of ids) drained += db.run(deleteMessage, id, runId);
  return drained === 0 ? null : Number(db.get(decrementMessageCount, drained, runId)?.pending_messages) > 0;
}

export function releaseTasks(db: Connection, runIds: readonly string[], at: number): void {
  for (const runId of runIds) db.run(releaseTask, at, runId);
}
