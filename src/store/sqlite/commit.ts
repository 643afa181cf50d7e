/**
 * A batch, applied inside a transaction that its caller opens and ends. The order of work is that of memory.ts.
 *
 * Prepared statements in a loop: SQLite is a function call away, and passing rows as JSON (json_each) was slower.
 */

import type { Batch, CommitResult, CursorWrite, Fence, Next, Transition } from "../contract/store.js";
import { packEvents } from "../shared/event-rows.js";
import { taskState } from "../sql/records.js";
import type { Connection } from "./connection.js";
import { deliver, drain, release } from "./mail.js";
import { startChildren, startRuns } from "./starts.js";

/** Whether the writer may write to this run: a worker must own it, anybody else must find it unowned and read up. */
const isOurs = "SELECT 1 FROM pawl_tasks WHERE run_id = ? AND owner = ? AND epoch = ?";
export const isFree = `SELECT 1 FROM pawl_tasks WHERE run_id = ? AND state <> ${taskState.owned} AND mail = 0`;

export const eventColumns = "run_id, seq, span, type, node, attempt, outcome, data, at";

/**
 * The hot one: all that an inline step writes. The check is part of it, as is that the log ends where the writer thinks
 * it does. The primary key alone would let a gap pass, or a number in the middle of a row that spans several.
 */
const insertEvents = (mayWrite: string) => `INSERT INTO pawl_events (${eventColumns}) SELECT ?, ?, ?, ?, ?, ?, ?, ?, ?
  WHERE EXISTS (${mayWrite})
  AND coalesce((SELECT seq + span FROM pawl_events WHERE run_id = ? ORDER BY seq DESC LIMIT 1), 1) = ?`;
const insertEventsIfOurs = insertEvents(isOurs);
const insertEventsIfFree = insertEvents(isFree);

/** No change: mail came that the owner has not seen, so it keeps the run. */
export const parkTask = `UPDATE pawl_tasks SET state = ?, due_at = ?, owner = NULL, epoch = NULL, deliveries = 0, fresh = 0,
  workflow = coalesce(?, workflow), priority = coalesce(?, priority)
  WHERE run_id = ? AND mail = 0`;
/** A run that has not begun is written to by a client: its task goes on as it was, but its log is not empty any more. */
export const keepTask = "UPDATE pawl_tasks SET fresh = 0 WHERE run_id = ? AND mail = 0";
export const parkRun =
  "UPDATE pawl_runs SET status = ?, waiting = ?, started_at = coalesce(started_at, ?) WHERE id = ?";

const finishRun = `UPDATE pawl_runs SET status = ?, output = ?, error = ?, waiting = ?,
  started_at = coalesce(started_at, ?), finished_at = ?, hero_key = NULL WHERE id = ?`;
/** No change: mail came that the owner has not seen, so the run cannot end yet; or the run is not the writer's. */
export const deleteTask = "DELETE FROM pawl_tasks WHERE run_id = ? AND mail = 0";
const deleteTaskIfOurs = `${deleteTask} AND owner = ? AND epoch = ?`;

/** Whether the fence holds, and whether there is any message at all: as a rule there is none, and no run needs to be asked. */
const selectWorker = `SELECT EXISTS (SELECT 1 FROM pawl_inbox) AS messages FROM pawl_workers
  WHERE id = ? AND epoch = ? AND live = 1`;
const hasMail = "SELECT 1 FROM pawl_tasks WHERE run_id = ? AND mail > 0";

export const markUsed = "UPDATE pawl_tasks SET fresh = 0 WHERE run_id = ?";

export const writeCursor = `INSERT INTO pawl_cursors (run_id, node, cursor, progress, at) VALUES (?, ?, ?, ?, ?)
  ON CONFLICT (run_id, node) DO UPDATE SET
  cursor = CASE WHEN ? THEN excluded.cursor ELSE cursor END,
  progress = CASE WHEN ? THEN excluded.progress ELSE progress END,
  at = excluded.at`;

/** Anything but "committed" has to be rolled back: part of it may have been written. */
export function applyBatch(db: Connection, { fence, transitions, starts }: Batch, at: number): CommitResult {
  const worker = fence === null ? null : db.get(selectWorker, fence.workerId, fence.epoch);
  if (worker === undefined) return { kind: "fenced" };
  const kept: string[] = [];
  const mailed: string[] = [];
  const hasMessages = worker?.messages === 1;
  for (const transition of transitions) {
    const { runId } = transition;
    if (!append(db, transition, fence, at)) return { kind: "conflict", runId };
    const isLeft = transition.drained.length > 0 ? drain(db, runId, transition.drained) : null;
    for (const write of transition.cursors) saveCursor(db, runId, write, at);
    if (transition.starts.length > 0) startChildren(db, transition.starts, fence, at);
    if (transition.mail.length > 0) deliver(db, transition.mail, at);
    if (transition.release.length > 0) release(db, transition.release, at);
    if (!advance(db, transition, fence, at)) {
      if (transition.next.kind === "finish") return endConflict(db, runId, fence);
      kept.push(runId);
    }
    if (!hasMessages || transition.next.kind !== "keep") continue;
    if (isLeft ?? db.get(hasMail, runId) !== undefined) mailed.push(runId);
  }
  const refused = starts.length > 0 ? startRuns(db, starts, fence, at) : [];
  return { kind: "committed", at, kept, mailed, refused };
}

/** A run that has messages cannot end yet; one that is not the writer's is not the writer's to end. */
function endConflict(db: Connection, runId: string, fence: Fence | null): CommitResult {
  const isTheirs = fence !== null && db.get(isOurs, runId, fence.workerId, fence.epoch) === undefined;
  return isTheirs ? { kind: "conflict", runId } : { kind: "conflict", runId, unread: true };
}

export const isCommitted = (result: CommitResult): boolean => result.kind === "committed";

/** False: this run is not the writer's, or its log is not what the writer thinks. */
function append(db: Connection, { runId, after, events, next }: Transition, fence: Fence | null, at: number): boolean {
  const seq = after + 1;
  if (events.length === 0) {
    // The statement that ends the run checks that by itself.
    if (fence !== null && next.kind === "finish") return true;
    const found = fence === null ? db.get(isFree, runId) : db.get(isOurs, runId, fence.workerId, fence.epoch);
    return found !== undefined;
  }
  const { span, type, node, attempt, outcome, data } = packEvents(events);
  const written =
    fence === null
      ? db.run(insertEventsIfFree, runId, seq, span, type, node, attempt, outcome, data, at, runId, runId, seq)
      : db.run(
          insertEventsIfOurs,
          ...[runId, seq, span, type, node, attempt, outcome, data, at],
          ...[runId, fence.workerId, fence.epoch, runId, seq],
        );
  return written === 1;
}

/** What becomes of the task and the run's row. False: it was to be parked, or to end, but has mail. */
function advance(db: Connection, transition: Transition, fence: Fence | null, at: number): boolean {
  const { runId, next, after, events } = transition;
  if (next.kind === "keep") {
    // A worker's run is no longer fresh since it was claimed.
    if (fence === null) db.run(markUsed, runId);
    return true;
  }
  const startedAt = next.startedAt === "now" ? at : next.startedAt;
  if (next.kind === "finish") {
    const deleted =
      fence === null ? db.run(deleteTask, runId) : db.run(deleteTaskIfOurs, runId, fence.workerId, fence.epoch);
    if (deleted === 0) return false;
    db.run(finishRun, next.status, next.output, next.error, String(after + events.length), startedAt, at, runId);
    return true;
  }
  const { dueAt, state } = dueOf(next, at);
  const parked = next.keepsDue
    ? db.run(keepTask, runId)
    : db.run(parkTask, state, dueAt, next.route ?? null, next.priority ?? null, runId);
  if (parked === 0) return false;
  db.run(parkRun, next.status, next.waiting, startedAt, runId);
  return true;
}

/** When a run that is parked becomes due, and what that makes of its task. */
export function dueOf({ wakeAt, wakeIn }: Extract<Next, { kind: "park" }>, at: number) {
  const dueAt = earlier(wakeAt, wakeIn === null ? null : at + wakeIn);
  return { dueAt, state: dueAt !== null && dueAt <= at ? taskState.ready : taskState.parked };
}

function saveCursor(db: Connection, runId: string, write: CursorWrite, at: number): void {
  db.run(writeCursor, ...cursorValues(runId, write, at));
}

export function cursorValues(runId: string, { node, cursor, progress }: CursorWrite, at: number): unknown[] {
  const hasCursor = cursor === undefined ? 0 : 1;
  const hasProgress = progress === undefined ? 0 : 1;
  return [runId, node, cursor ?? null, progress ?? null, at, hasCursor, hasProgress];
}

const earlier = (a: number | null, b: number | null) => (a === null ? b : b === null ? a : Math.min(a, b));
