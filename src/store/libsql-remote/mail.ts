/** Messages to runs, in a batch. */

import type { Mail } from "../contract/store.js";
import { insertMailColumns, raiseMail, releaseTask } from "../sqlite/mail.js";
import type { Plan } from "./plan.js";

const insertMailIfRaised = `${insertMailColumns} SELECT ?, ?, ?, ? WHERE changes() = 1`;

const isDrained = "run_id = ?1 AND id IN (SELECT value FROM json_each(?2))";
/** First: it counts what the second deletes. */
const lowerMail = `UPDATE pawl_tasks SET mail = mail - (SELECT count(*) FROM pawl_inbox WHERE ${isDrained})
  WHERE run_id = ?1`;
const deleteMail = `DELETE FROM pawl_inbox WHERE ${isDrained}`;

/** The number of the statement for each message that changes nothing if its addressee has no task. */
export function planMail(plan: Plan<unknown>, mail: readonly Mail[], at: number): number[] {
  return mail.map(({ to, kind, data }) => {
    const raised = plan.add(raiseMail, at, to);
    plan.add(insertMailIfRaised, to, kind, data, at);
    return raised;
  });
}

export function planDrain(plan: Plan<unknown>, runId: string, ids: readonly number[]): void {
  const list = JSON.stringify(ids);
  plan.add(lowerMail, runId, list);
  plan.add(deleteMail, runId, list);
}

export function planRelease(plan: Plan<unknown>, runIds: readonly string[], at: number): void {
  for (const runId of runIds) plan.add(releaseTask, at, runId);
}
