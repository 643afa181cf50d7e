/** Messages to runs. */

import type { Mail, SentInTransaction } from "../contract/store.js";
import type { Queryable } from "../sql/dialect.js";
import { taskState } from "../sql/records.js";
import type { Connection } from "./connection.js";

/** A parked addressee is ready at once; one that is owned stays where it is, its owner will look. */
export const raiseMail = `UPDATE pawl_tasks SET mail = mail + 1,
  due_at = CASE state WHEN ${taskState.parked} THEN ? ELSE due_at END,
  state = CASE state WHEN ${taskState.parked} THEN ${taskState.ready} ELSE state END
  WHERE run_id = ?`;

const selectTask = `SELECT t.state, r.started_at FROM pawl_tasks t JOIN pawl_runs r ON r.id = t.run_id WHERE t.run_id = ?`;

export const insertMailColumns = "INSERT INTO pawl_inbox (run_id, kind, data, at)";
const insertMail = `${insertMailColumns} VALUES (?, ?, ?, ?)`;
const deleteMail = "DELETE FROM pawl_inbox WHERE id = ? AND run_id = ?";
const lowerMail = "UPDATE pawl_tasks SET mail = mail - ? WHERE run_id = ? RETURNING mail";

export const releaseTask = `UPDATE pawl_tasks SET state = ${taskState.ready}, due_at = ?
  WHERE run_id = ? AND state = ${taskState.parked}`;

/** Gives back the addressees that have no task. */
export function deliver(db: Connection, mail: readonly Mail[], at: number): string[] {
  const undeliverable: string[] = [];
  for (const { to, kind, data } of mail) {
    if (db.run(raiseMail, at, to) === 1) db.run(insertMail, to, kind, data, at);
    else undeliverable.push(to);
  }
  return undeliverable;
}

/** The same over a transaction that is not ours. A run that is parked and has not begun must not begin because of a message. */
export async function deliverBy(db: Queryable, mail: readonly Mail[], at: number): Promise<SentInTransaction> {
  const undeliverable: string[] = [];
  const unbegun: string[] = [];
  for (const { to, kind, data } of mail) {
    const [task] = await db.query(selectTask, [to]);
    if (task === undefined) undeliverable.push(to);
    else if (task.state === taskState.parked && task.started_at === null) unbegun.push(to);
    else {
      await db.query(raiseMail, [at, to]);
      await db.query(insertMail, [to, kind, data, at]);
    }
  }
  return { undeliverable, unbegun };
}

/** Whether messages are left; null: none was there to be drained, so it is not known. */
export function drain(db: Connection, runId: string, ids: readonly number[]): boolean | null {
  let drained = 0;
  for (const id of ids) drained += db.run(deleteMail, id, runId);
  return drained === 0 ? null : Number(db.get(lowerMail, drained, runId)?.mail) > 0;
}

export function release(db: Connection, runIds: readonly string[], at: number): void {
  for (const runId of runIds) db.run(releaseTask, at, runId);
}
