/**
 * A batch, applied inside a transaction that its caller opens and ends. The order of work is that of memory.ts.
 *
 * Prepared statements in a loop: SQLite is a function call away, and passing rows as JSON (json_each) was slower.
 */

import type { Batch, CommitResult, CursorWrite, Fence, NextTaskState, Transition } from "../contract/store.js";
import { packEvents } from "../shared/event-rows.js";
import { taskState } from "../sql/records.js";
import type { Connection } from "./connection.js";
import { deliverMessages, drainMessages, releaseTasks } from "./messages.js";
import { startChildren, startRuns } from "./starts.js";

/** Whether the writer may write to this run: a worker must own it, anybody else must find it unowned and read up. */
const selectOwnedTask = "SELECT 1 FROM pawl_tasks WHERE run_id = ? AND owner = ? AND epoch = ?";
export const selectUnownedTask = `SELECT 1 FROM pawl_tasks WHERE run_id = ? AND state <> ${taskState.owned} AND pending_messages = 0`;

export const eventColumns = "run_id, seq, span, type, node, attempt, outcome, data, at";

/**
 * The hot one: all that an inline step writes. The check is part of it, as is that the log ends where the writer thinks
 * it does. The primary key alone would let a gap pass, or a number in the middle of a row that spans several.
 */
const insertEvents = (
  writableTaskQuery: string,
) => `INSERT INTO pawl_events (${eventColumns}) SELECT ?, ?, ?, ?, ?, ?, ?, ?, ?
  WHERE EXISTS (${writableTaskQuery})
  AND coalesce((SELECT seq + span FROM pawl_events WHERE run_id = ? ORDER BY seq DESC LIMIT 1), 1) = ?`;
const insertEventsIfOwned = insertEvents(selectOwnedTask);
const insertEventsIfUnowned = insertEvents(selectUnownedTask);

/** No change: mail came that the owner has not seen, so it keeps the run. */
export const parkTask = `UPDATE pawl_tasks SET state = ?, due_at = ?, owner = NULL, epoch = NULL, deliveries = 0, fresh = 0,
  workflow = coalesce(?, workflow), priority = coalesce(?, priority)
  WHERE run_id = ? AND pending_messages = 0`;
/** A run that has not begun is written to by a client: its task goes on as it was, but its log is not empty any more. */
export const keepTaskDueAt = "UPDATE pawl_tasks SET fresh = 0 WHERE run_id = ? AND pending_messages = 0";
export const parkRun =
  "UPDATE pawl_runs SET status = ?, waiting = ?, started_at = coalesce(started_at, ?) WHERE id = ?";

const finishRun = `UPDATE pawl_runs SET status = ?, output = ?, error = ?, waiting = ?,
  started_at = coalesce(started_at, ?), finished_at = ?, hero_key = NULL WHERE id = ?`;
/** No change: mail came that the owner has not seen, so the run cannot end yet; or the run is not the writer's. */
export const deleteTask = "DELETE FROM pawl_tasks WHERE run_id = ? AND pending_messages = 0";
const deleteTaskIfOwned = `${deleteTask} AND owner = ? AND epoch = ?`;

/** Whether the fence holds, and whether there is any message at all: as a rule there is none, and no run needs to be asked. */
const selectWorker = `SELECT EXISTS (SELECT 1 FROM pawl_inbox) AS messages FROM pawl_workers
  WHERE id = ? AND epoch = ? AND live = 1`;
const selectTaskWithMessages = "SELECT 1 FROM pawl_tasks WHERE run_id = ? AND pending_messages > 0";

export const clearFresh = "UPDATE pawl_tasks SET fresh = 0 WHERE run_id = ?";

export const upsertCursor = `INSERT INTO pawl_cursors (run_id, node, cursor, progress, at) VALUES (?, ?, ?, ?, ?)
  ON CONFLICT (run_id, node) DO UPDATE SET
  cursor = CASE WHEN ? THEN excluded.cursor ELSE cursor END,
  progress = CASE WHEN ? THEN excluded.progress ELSE progress END,
  at = excluded.at`;

/** Anything but "committed" has to be rolled back: part of it may have been written. */
export function applyBatch(db: Connection, { fence, transitions, starts }: Batch, at: number): CommitResult {
  const worker = fence === null ? null : db.get(selectWorker, fence.workerId, fence.epoch);
  if (worker === undefined) return { kind: "fenced" };
  const notParked: string[] = [];
  const ownedWithMessages: string[] = [];
  const inboxHasMessages = worker?.messages === 1;
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
  return { kind: "committed", at, notParked, ownedWithMessages, refused };
}

/** A run that has messages cannot end yet; one that is not the writer's is not the writer's to end. */
function finishConflictOf(db: Connection, runId: string, fence: Fence | null): CommitResult {
  const isOwnedElsewhere = fence !== null && db.get(selectOwnedTask, runId, fence.workerId, fence.epoch) === undefined;
  return isOwnedElsewhere ? { kind: "conflict", runId } : { kind: "conflict", runId, hasUnreadMessages: true };
}

export const isCommitted = (result: CommitResult): boolean => result.kind === "committed";

/** False: this run is not the writer's, or its log is not what the writer thinks. */
function appendEvents(
  db: Connection,
  { runId, afterSeq, events, next }: Transition,
  fence: Fence | null,
  at: number,
): boolean {
  const seq = afterSeq + 1;
  if (events.length === 0) {
    // The statement that ends the run checks that by itself.
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

/** What becomes of the task and the run's row. False: it was to be parked, or to end, but has mail. */
function applyNext(db: Connection, transition: Transition, fence: Fence | null, at: number): boolean {
  const { runId, next, afterSeq, events } = transition;
  if (next.kind === "keep") {
    // A worker's run is no longer fresh since it was claimed.
    if (fence === null) db.run(clearFresh, runId);
    return true;
  }
  const startedAt = next.startedAt === "now" ? at : next.startedAt;
  if (next.kind === "finish") {
    const deleted =
      fence === null ? db.run(deleteTask, runId) : db.run(deleteTaskIfOwned, runId, fence.workerId, fence.epoch);
    if (deleted === 0) return false;
    db.run(finishRun, next.status, next.output, next.error, String(afterSeq + events.length), startedAt, at, runId);
    return true;
  }
  const { dueAt, state } = dueAndStateOf(next, at);
  const parkedRows = next.keepsDueTime
    ? db.run(keepTaskDueAt, runId)
    : db.run(parkTask, state, dueAt, next.route ?? null, next.priority ?? null, runId);
  if (parkedRows === 0) return false;
  db.run(parkRun, next.status, next.waiting, startedAt, runId);
  return true;
}

/** When a run that is parked becomes due, and what that makes of its task. */
export function dueAndStateOf({ wakeAt, wakeInMs }: Extract<NextTaskState, { kind: "park" }>, at: number) {
  const dueAt = earlier(wakeAt, wakeInMs === null ? null : at + wakeInMs);
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

const earlier = (a: number | null, b: number | null) => (a === null ? b : b === null ? a : Math.min(a, b));
