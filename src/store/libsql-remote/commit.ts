/** Plans a commit as one guarded batch of statements, in the order of sqlite/commit.ts, and reads its results. */

import type { Batch, CommitResult, Fence, Transition } from "../contract/store.js";
import { packEvents } from "../shared/event-rows.js";
import {
  clearFresh,
  cursorValues,
  deleteExecutingSlots,
  deleteSlots,
  deleteTask,
  dueAndStateOf,
  endScheduledRun,
  eventColumns,
  keepTaskDueAt,
  parkRun,
  parkTask,
  parkTaskOfClient,
  parkValuesOfClient,
  selectUnownedTask,
  upsertCursor,
} from "../sqlite/commit.js";
import type { Result } from "./driver.js";
import { planKeyChange, planUnrefusedStarts } from "./key-changes.js";
import { planDrain, planMessages, planRelease } from "./messages.js";
import { planChildren, planStarts } from "./starts.js";
import { guardStatement, holdsFence, StatementPlan } from "./statement-plan.js";

type RefusedCommit = Exclude<CommitResult, { kind: "committed" }>;

export interface CommitPlan {
  readonly plan: StatementPlan<RefusedCommit>;
  resultOf(results: readonly Result[]): CommitResult;
}

/** A worker may write to a run that it owns, a client to a run that has no owner and no unread messages. */
const selectOwnedTask = "SELECT 1 FROM pawl_tasks WHERE run_id = ? AND owner = ? AND epoch = ?";
const guardIsOwned = guardStatement(`EXISTS (${selectOwnedTask})`);
const guardIsUnowned = guardStatement(`EXISTS (${selectUnownedTask})`);

/**
 * This statement is the hot path: the commit of an inline step writes nothing else. If the writer may not write to the
 * run, or the log does not end where the writer expects, run_id becomes NULL and the statement fails.
 */
const insertEventsIf = (writableTaskQuery: string) => `INSERT INTO pawl_events (${eventColumns})
  SELECT CASE WHEN EXISTS (${writableTaskQuery})
    AND coalesce((SELECT seq + span FROM pawl_events WHERE run_id = ?1 ORDER BY seq DESC LIMIT 1), 1) = ?2
    THEN ?1 END, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9`;
const insertEventsIfOwned = insertEventsIf(
  "SELECT 1 FROM pawl_tasks WHERE run_id = ?1 AND owner = ?10 AND epoch = ?11",
);
const insertEventsIfUnowned = insertEventsIf(selectUnownedTask.replace("?", "?1"));

/**
 * If unread messages keep the run with its owner, the preceding statement (`parkTask`) changes no row, and then this
 * statement changes none either.
 */
const parkRunIfParked = `${parkRun} AND changes() = 1`;
/**
 * If the run has unread messages, the preceding statement (`deleteTask`) deletes no row; then the status becomes NULL
 * and this statement fails.
 */
const finishRunIfDeleted = `UPDATE pawl_runs SET status = CASE WHEN changes() = 1 THEN ? END, output = ?, error = ?,
  waiting = ?, started_at = coalesce(started_at, ?), finished_at = ?, hero_key = NULL WHERE id = ?`;

/** Reads a partial index that is almost always empty. */
const selectRunsWithMessages =
  "SELECT run_id FROM pawl_tasks WHERE owner = ? AND owner IS NOT NULL AND pending_messages > 0";

/** Unread messages may have kept the run with its owner, and with its slots. */
const deleteSlotsIfParked = `${deleteExecutingSlots} AND NOT EXISTS (SELECT 1 FROM pawl_tasks WHERE run_id = ? AND owner IS NOT NULL)`;

export function planCommit({ fence, transitions, starts, keyChange }: Batch, at: number): CommitPlan {
  const plan = new StatementPlan<RefusedCommit>();
  const runIdByParkIndex = new Map<number, string>();
  if (fence !== null) plan.addGuard({ kind: "fenced" }, guardStatement(holdsFence), fence.workerId, fence.epoch);
  if (keyChange !== undefined) planKeyChange(plan, keyChange, at);
  for (const transition of transitions) {
    planAppend(plan, transition, fence, at);
    planEffects(plan, transition, fence, at);
    const index = planNext(plan, transition, fence, at);
    if (index !== null) runIdByParkIndex.set(index, transition.runId);
  }
  const keptTransitions = fence === null ? [] : transitions.filter(({ next }) => next.kind === "keep");
  const messagesIndex =
    keptTransitions.length === 0 || fence === null ? null : plan.add(selectRunsWithMessages, fence.workerId);
  const readRefusals = planStarts(plan, starts, fence, at);
  if (keyChange !== undefined) planUnrefusedStarts(plan, starts);
  return {
    plan,
    resultOf: (results) => ({
      kind: "committed",
      at,
      notParked: [...runIdByParkIndex].flatMap(([index, runId]) => (results[index]?.rowsAffected === 0 ? [runId] : [])),
      ownedWithMessages: messagesIndex === null ? [] : runsWithMessagesAmong(keptTransitions, results[messagesIndex]),
      refused: readRefusals(results),
    }),
  };
}

function planAppend(plan: StatementPlan<RefusedCommit>, transition: Transition, fence: Fence | null, at: number): void {
  const { runId, afterSeq, events } = transition;
  const conflict = { kind: "conflict", runId } as const;
  const fenceValues = fence === null ? [] : [fence.workerId, fence.epoch];
  if (events.length === 0) {
    plan.addGuard(conflict, fence === null ? guardIsUnowned : guardIsOwned, runId, ...fenceValues);
    return;
  }
  const { span, type, node, attempt, outcome, data } = packEvents(events);
  const row = [runId, afterSeq + 1, span, type, node, attempt, outcome, data, at];
  plan.addGuard(conflict, fence === null ? insertEventsIfUnowned : insertEventsIfOwned, ...row, ...fenceValues);
}

function planEffects(
  plan: StatementPlan<RefusedCommit>,
  transition: Transition,
  fence: Fence | null,
  at: number,
): void {
  const { runId, drainedInboxIds, cursors, newChildren, messages, releasedChildIds } = transition;
  if (drainedInboxIds.length > 0) planDrain(plan, runId, drainedInboxIds);
  for (const write of cursors) plan.add(upsertCursor, ...cursorValues(runId, write, at));
  planChildren(plan, newChildren, fence, at);
  planMessages(plan, messages, at);
  planRelease(plan, releasedChildIds, at);
}

/** Returns the index of the statement that changes no row if unread messages keep the run with its owner. */
function planNext(
  plan: StatementPlan<RefusedCommit>,
  transition: Transition,
  fence: Fence | null,
  at: number,
): number | null {
  const { runId, next, afterSeq, events } = transition;
  if (next.kind === "keep") {
    // For a run that a worker owns, the claim has already cleared `fresh`.
    if (fence === null) plan.add(clearFresh, runId);
    return null;
  }
  const startedAt = next.startedAt === "now" ? at : next.startedAt;
  if (next.kind === "finish") {
    const { status, output, error } = next;
    plan.add(deleteTask, runId);
    const unreadMessagesConflict = { kind: "conflict", runId, hasUnreadMessages: true } as const;
    const finishValues = [status, output, error, String(afterSeq + events.length), startedAt, at];
    plan.addGuard(unreadMessagesConflict, finishRunIfDeleted, ...finishValues, runId);
    if (next.releasesSlots) plan.add(deleteSlots, runId);
    if (next.scheduleName !== undefined) plan.add(endScheduledRun, at, at, next.scheduleName);
    return null;
  }
  const { dueAt, state } = dueAndStateOf(next, at);
  const parkIndex = next.keepsDueTime
    ? plan.add(keepTaskDueAt, runId)
    : fence === null
      ? plan.add(parkTaskOfClient, ...parkValuesOfClient(next, state, dueAt), runId)
      : plan.add(parkTask, state, dueAt, next.route ?? null, next.priority ?? null, runId);
  plan.add(parkRunIfParked, next.status, next.waiting, startedAt, runId);
  if (next.releasesSlots) plan.add(deleteSlotsIfParked, runId, runId);
  return parkIndex;
}

function runsWithMessagesAmong(transitions: readonly Transition[], result: Result | undefined): string[] {
  const runIdsWithMessages = new Set(result?.rows.map((row) => row.run_id));
  return transitions.flatMap(({ runId }) => (runIdsWithMessages.has(runId) ? [runId] : []));
}
