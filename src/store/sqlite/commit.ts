/**
 * Applies a batch inside a transaction that the caller begins and ends, in the same order as the memory store does.
 *
 * The statements are prepared and run in a loop: calls into SQLite stay in this process, and passing many rows as JSON
 * (json_each) was slower.
 */

import { classSeparator } from "../../core/naming/route.js";
import type { Batch, CommitResult, CursorWrite, Fence, NextTaskState, Transition } from "../contract/store.js";
import { packEvents } from "../shared/event-rows.js";
import { taskState } from "../sql/records.js";
import type { Connection } from "./connection.js";
import { applyKeyChange } from "./key-changes.js";
import { deliverMessages, drainMessages, releaseTasks } from "./messages.js";
import { startChildren, startRuns } from "./starts.js";

/** A worker may write to a run that it owns, a client to a run that has no owner and no unread messages. */
const selectOwnedTask = "SELECT 1 FROM pawl_tasks WHERE run_id = ? AND owner = ? AND epoch = ?";
export const selectUnownedTask = `SELECT 1 FROM pawl_tasks WHERE run_id = ? AND state <> ${taskState.owned} AND pending_messages = 0`;

export const eventColumns = "run_id, seq, span, type, node, attempt, outcome, data, at";

/**
 * This statement is the hot path: the commit of an inline step consists of it alone. It checks that the writer may
 * write to the run, and that the log ends where the writer expects. The primary key alone would accept a gap, or a
 * number inside a row that spans several events.
 */
const insertEvents = (
  writableTaskQuery: string,
) => `INSERT INTO pawl_events (${eventColumns}) SELECT ?, ?, ?, ?, ?, ?, ?, ?, ?
  WHERE EXISTS (${writableTaskQuery})
  AND coalesce((SELECT seq + span FROM pawl_events WHERE run_id = ? ORDER BY seq DESC LIMIT 1), 1) = ?`;
const insertEventsIfOwned = insertEvents(selectOwnedTask);
const insertEventsIfUnowned = insertEvents(selectUnownedTask);

/** Changes no row if messages have arrived that the owner has not read; then the owner keeps the run. */
export const parkTask = `UPDATE pawl_tasks SET state = ?, due_at = ?, owner = NULL, epoch = NULL, deliveries = 0, fresh = 0,
  workflow = coalesce(?, workflow), priority = coalesce(?, priority)
  WHERE run_id = ? AND pending_messages = 0`;
/** A client may park a task that waits in a class. Then the task gets the route back that it had before. */
export const parkTaskOfClient = parkTask.replace(
  "coalesce(?, workflow)",
  "coalesce(?, CASE instr(workflow, ?) WHEN 0 THEN workflow ELSE substr(workflow, 1, instr(workflow, ?) - 1) END)",
);
/**
 * Used when a client writes to a run that has not started: the task keeps its due time, but it is not fresh any more,
 * because the log is not empty.
 */
export const keepTaskDueAt = "UPDATE pawl_tasks SET fresh = 0 WHERE run_id = ? AND pending_messages = 0";
export const parkRun =
  "UPDATE pawl_runs SET status = ?, waiting = ?, started_at = coalesce(started_at, ?) WHERE id = ?";

const finishRun = `UPDATE pawl_runs SET status = ?, output = ?, error = ?, waiting = ?,
  started_at = coalesce(started_at, ?), finished_at = ?, hero_key = NULL WHERE id = ?`;
/** Changes no row if the run has unread messages and so cannot end yet, or if the writer does not own the run. */
export const deleteTask = "DELETE FROM pawl_tasks WHERE run_id = ? AND pending_messages = 0";
const deleteTaskIfOwned = `${deleteTask} AND owner = ? AND epoch = ?`;

/**
 * Returns a row if the fence is valid. Usually the inbox is empty; then `applyBatch` does not check each task for
 * messages.
 */
const selectWorker = `SELECT EXISTS (SELECT 1 FROM pawl_inbox) AS inbox_has_messages FROM pawl_workers
  WHERE id = ? AND epoch = ? AND live = 1`;
const selectTaskWithMessages = "SELECT 1 FROM pawl_tasks WHERE run_id = ? AND pending_messages > 0";

export const deleteSlots = "DELETE FROM pawl_slots WHERE run_id = ?";
export const deleteExecutingSlots = `${deleteSlots} AND owner IS NOT NULL`;
/** Makes the schedule due whose run ends, and gives it a new revision: a worker that is looking at it must look again. */
export const endScheduledRun =
  "UPDATE pawl_schedules SET revision = revision + 1, next_at = min(coalesce(next_at, ?), ?) WHERE name = ?";

export const clearFresh = "UPDATE pawl_tasks SET fresh = 0 WHERE run_id = ?";

export const upsertCursor = `INSERT INTO pawl_cursors (run_id, node, cursor, progress, at) VALUES (?, ?, ?, ?, ?)
  ON CONFLICT (run_id, node) DO UPDATE SET
  cursor = CASE WHEN ? THEN excluded.cursor ELSE cursor END,
  progress = CASE WHEN ? THEN excluded.progress ELSE progress END,
  at = excluded.at`;

/** The caller must roll back unless the result is "committed": part of the batch may have been written. */
export function applyBatch(db: Connection, batch: Batch, at: number): CommitResult {
  const { fence, transitions, starts, keyChange } = batch;
  const keyConflict = keyChange === undefined ? null : applyKeyChange(db, keyChange, at);
  if (keyConflict !== null) return keyConflict;
  const worker = fence === null ? null : db.get(selectWorker, fence.workerId, fence.epoch);
  if (worker === undefined) return { kind: "fenced" };
  const notParked: string[] = [];
  const ownedWithMessages: string[] = [];
  const inboxHasMessages = worker?.inbox_has_messages === 1;
  for (const transition of transitions) {
    const { runId } = transition;
    if (!appendEvents(db, transition, fence, at)) return { kind: "conflict", runId };
    const hasMessagesLeft =
      transition.drainedInboxIds.length > 0 ? drainMessages(db, runId, transition.drainedInboxIds) : null;
    for (const write of transition.cursors) saveCursor(db, runId, write, at);
    if (transition.newChildren.length > 0) startChildren(db, transition.newChildren, fence, at);
    if (transition.messages.length > 0) deliverMessages(db, transition.messages, at);
    if (transition.releasedChildIds.length > 0) releaseTasks(db, transition.releasedChildIds, at);
    if (!applyNext(db, transition, fence, at)) {
      if (transition.next.kind === "finish") return finishConflictOf(db, runId, fence);
      notParked.push(runId);
    }
    if (!inboxHasMessages || transition.next.kind !== "keep") continue;
    if (hasMessagesLeft ?? db.get(selectTaskWithMessages, runId) !== undefined) ownedWithMessages.push(runId);
  }
  const refused = starts.length > 0 ? startRuns(db, starts, fence, at) : [];
  const [refusal] = keyChange === undefined ? [] : refused;
  if (refusal !== undefined) return { kind: "conflict", runId: refusal.existing.id };
  return { kind: "committed", at, notParked, ownedWithMessages, refused };
}

/**
 * Called when the task of a finishing run was not deleted: either the writer does not own the task, or the run has
 * unread messages.
 */
function finishConflictOf(db: Connection, runId: string, fence: Fence | null): CommitResult {
  const isOwnedElsewhere = fence !== null && db.get(selectOwnedTask, runId, fence.workerId, fence.epoch) === undefined;
  return isOwnedElsewhere ? { kind: "conflict", runId } : { kind: "conflict", runId, hasUnreadMessages: true };
}

export const isCommitted = (result: CommitResult): boolean => result.kind === "committed";

/** Returns false if the writer may not write to this run, or if its log does not end where the writer expects. */
function appendEvents(
  db: Connection,
  { runId, afterSeq, events, next }: Transition,
  fence: Fence | null,
  at: number,
): boolean {
  const seq = afterSeq + 1;
  if (events.length === 0) {
    // The statement that deletes the task checks the owner by itself.
    if (fence !== null && next.kind === "finish") return true;
    const task =
      fence === null ? db.get(selectUnownedTask, runId) : db.get(selectOwnedTask, runId, fence.workerId, fence.epoch);
    return task !== undefined;
  }
  const { span, type, node, attempt, outcome, data } = packEvents(events);
  const insertedRows =
    fence === null
      ? db.run(insertEventsIfUnowned, runId, seq, span, type, node, attempt, outcome, data, at, runId, runId, seq)
      : db.run(
          insertEventsIfOwned,
          ...[runId, seq, span, type, node, attempt, outcome, data, at],
          ...[runId, fence.workerId, fence.epoch, runId, seq],
        );
  return insertedRows === 1;
}

/** Updates the task and the run's row. Returns false if unread messages keep the run from being parked or ended. */
function applyNext(db: Connection, transition: Transition, fence: Fence | null, at: number): boolean {
  const { runId, next, afterSeq, events } = transition;
  if (next.kind === "keep") {
    // For a run that a worker owns, the claim has already cleared `fresh`.
    if (fence === null) db.run(clearFresh, runId);
    return true;
  }
  const startedAt = next.startedAt === "now" ? at : next.startedAt;
  if (next.kind === "finish") {
    const deleted =
      fence === null ? db.run(deleteTask, runId) : db.run(deleteTaskIfOwned, runId, fence.workerId, fence.epoch);
    if (deleted === 0) return false;
    db.run(finishRun, next.status, next.output, next.error, String(afterSeq + events.length), startedAt, at, runId);
    if (next.releasesSlots) db.run(deleteSlots, runId);
    if (next.scheduleName !== undefined) db.run(endScheduledRun, at, at, next.scheduleName);
    return true;
  }
  const { dueAt, state } = dueAndStateOf(next, at);
  const parkedRows = next.keepsDueTime
    ? db.run(keepTaskDueAt, runId)
    : fence === null
      ? db.run(parkTaskOfClient, ...parkValuesOfClient(next, state, dueAt), runId)
      : db.run(parkTask, state, dueAt, next.route ?? null, next.priority ?? null, runId);
  if (parkedRows === 0) return false;
  if (next.releasesSlots) db.run(deleteExecutingSlots, runId);
  db.run(parkRun, next.status, next.waiting, startedAt, runId);
  return true;
}

export function parkValuesOfClient(
  { route, priority }: Extract<NextTaskState, { kind: "park" }>,
  state: number,
  dueAt: number | null,
): (string | number | null)[] {
  return [state, dueAt, route ?? null, classSeparator, classSeparator, priority ?? null];
}

/** Computes when a parked run becomes due, and the state of its task: ready if that time has already come. */
export function dueAndStateOf({ wakeAt, wakeInMs }: Extract<NextTaskState, { kind: "park" }>, at: number) {
  const dueAt = earlierOf(wakeAt, wakeInMs === null ? null : at + wakeInMs);
  return { dueAt, state: dueAt !== null && dueAt <= at ? taskState.ready : taskState.parked };
}

function saveCursor(db: Connection, runId: string, write: CursorWrite, at: number): void {
  db.run(upsertCursor, ...cursorValues(runId, write, at));
}

export function cursorValues(runId: string, { node, cursor, progress }: CursorWrite, at: number): unknown[] {
  const hasCursor = cursor === undefined ? 0 : 1;
  const hasProgress = progress === undefined ? 0 : 1;
  return [runId, node, cursor ?? null, progress ?? null, at, hasCursor, hasProgress];
}

const earlierOf = (a: number | null, b: number | null) => (a === null ? b : b === null ? a : Math.min(a, b));
