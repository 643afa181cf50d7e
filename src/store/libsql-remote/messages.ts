/** Plans the statements that deliver messages to runs, drain inboxes and release runs. */

import type { Message, SeenRun } from "../contract/store.js";
import {
  incrementMessageCount,
  incrementSeenMessageCount,
  insertMessageInto,
  releaseTask,
  seenValues,
} from "../sqlite/messages.js";
import type { StatementPlan } from "./statement-plan.js";

const insertMessageIfCounted = `${insertMessageInto} SELECT ?, ?, ?, ? WHERE changes() = 1`;

const isDrained = "run_id = ?1 AND id IN (SELECT value FROM json_each(?2))";
/** Runs before `deleteMessages`, because it counts the rows that are about to be deleted. */
const decrementMessageCount = `UPDATE pawl_tasks SET pending_messages = pending_messages - (SELECT count(*) FROM pawl_inbox WHERE ${isDrained})
  WHERE run_id = ?1`;
const deleteMessages = `DELETE FROM pawl_inbox WHERE ${isDrained}`;

/** Returns, for each message, the index of the statement that changes no row if the receiver has no task, or is not as seen. */
export function planMessages(
  plan: StatementPlan<unknown>,
  messages: readonly Message[],
  at: number,
  seen: SeenRun | null = null,
): number[] {
  return messages.map(({ to, kind, data }) => {
    const countIndex =
      seen === null
        ? plan.add(incrementMessageCount, at, to)
        : plan.add(incrementSeenMessageCount, at, to, ...seenValues(seen));
    plan.add(insertMessageIfCounted, to, kind, data, at);
    return countIndex;
  });
}

export function planDrain(plan: StatementPlan<unknown>, runId: string, ids: readonly number[]): void {
  const idsJson = JSON.stringify(ids);
  plan.add(decrementMessageCount, runId, idsJson);
  plan.add(deleteMessages, runId, idsJson);
}

export function planRelease(plan: StatementPlan<unknown>, runIds: readonly string[], at: number): void {
  for (const runId of runIds) plan.add(releaseTask, at, runId);
}
