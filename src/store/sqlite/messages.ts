/** Delivers messages to the inboxes of runs and drains them. */

import type { Message, SeenRun, SentInTransaction } from "../contract/store.js";
import type { Queryable } from "../sql/dialect.js";
import { taskState } from "../sql/records.js";
import type { Connection } from "./connection.js";

/** A parked receiver becomes ready at once. An owned receiver stays with its owner, which reads the inbox. */
export const incrementMessageCount = `UPDATE pawl_tasks SET pending_messages = pending_messages + 1,
  due_at = CASE state WHEN ${taskState.parked} THEN ? ELSE due_at END,
  state = CASE state WHEN ${taskState.parked} THEN ${taskState.ready} ELSE state END
  WHERE run_id = ?`;

/** The same for a run that still is as the sender has seen it: its messages, and its last event unless that is null. */
export const incrementSeenMessageCount = `${incrementMessageCount} AND pending_messages = ?
  AND coalesce(?, -1) IN (-1, coalesce((SELECT seq + span - 1 FROM pawl_events e WHERE e.run_id = pawl_tasks.run_id ORDER BY seq DESC LIMIT 1), 0))`;

export const seenValues = (seen: SeenRun) => [seen.pendingMessages, seen.lastEvent] as const;

const selectTask = `SELECT t.state, r.started_at FROM pawl_tasks t JOIN pawl_runs r ON r.id = t.run_id WHERE t.run_id = ?`;

export const insertMessageInto = "INSERT INTO pawl_inbox (run_id, kind, data, at)";
const insertMessage = `${insertMessageInto} VALUES (?, ?, ?, ?)`;
const deleteMessage = "DELETE FROM pawl_inbox WHERE id = ? AND run_id = ?";
const decrementMessageCount =
  "UPDATE pawl_tasks SET pending_messages = pending_messages - ? WHERE run_id = ? RETURNING pending_messages";

export const releaseTask = `UPDATE pawl_tasks SET state = ${taskState.ready}, due_at = ?
  WHERE run_id = ? AND state = ${taskState.parked}`;

/** Returns the receivers that have no task, or are not as the sender has seen them. */
export function deliverMessages(
  db: Connection,
  messages: readonly Message[],
  at: number,
  seen: SeenRun | null = null,
): string[] {
  const undeliverable: string[] = [];
  for (const { to, kind, data } of messages) {
    const count =
      seen === null
        ? db.run(incrementMessageCount, at, to)
        : db.run(incrementSeenMessageCount, at, to, ...seenValues(seen));
    if (count === 1) db.run(insertMessage, to, kind, data, at);
    else undeliverable.push(to);
  }
  return undeliverable;
}

/**
 * Delivers inside the caller's transaction. A message must not start a parked run that has not started yet, so a
 * message to such a run is not delivered and the run is returned in `notStarted`.
 */
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

/** Returns whether the run has messages left, or null if no row was deleted, because then the count was not read. */
export function drainMessages(db: Connection, runId: string, ids: readonly number[]): boolean | null {
  let deletedRows = 0;
  for (const id of ids) deletedRows += db.run(deleteMessage, id, runId);
  return deletedRows === 0 ? null : Number(db.get(decrementMessageCount, deletedRows, runId)?.pending_messages) > 0;
}

export function releaseTasks(db: Connection, runIds: readonly string[], at: number): void {
  for (const runId of runIds) db.run(releaseTask, at, runId);
}
