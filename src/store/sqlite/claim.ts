/** Taking due tasks. */

import type { ClaimedTask, ClaimRequest, ClaimResult, Route } from "../contract/store.js";
import type { SqlRow } from "../sql/dialect.js";
import { decodeRun, runColumnsWith, taskState } from "../sql/records.js";
import type { Connection } from "./connection.js";
import { holdsFence } from "./workers.js";

const selectCandidate = "SELECT run_id, priority, state, due_at, deliveries, pending_messages, fresh FROM pawl_tasks";

/** Each reads only as many entries of its partial index as it returns. */
const selectReady = `${selectCandidate} WHERE workflow = ? AND version = ? AND state = ${taskState.ready}
  ORDER BY priority DESC, due_at LIMIT ?`;
const selectDue = `${selectCandidate} WHERE workflow = ? AND version = ? AND state = ${taskState.parked} AND due_at <= ?
  ORDER BY due_at LIMIT ?`;
const selectNextDue = `SELECT due_at FROM pawl_tasks WHERE workflow = ? AND version = ?
  AND state = ${taskState.parked} AND due_at > ? ORDER BY due_at LIMIT 1`;

/** All that a poll wants to know, in one statement however many routes there are: an idle worker asks every second. */
export const selectClaimState = `SELECT
  EXISTS (SELECT 1 FROM pawl_workers WHERE id = ? AND epoch = ? AND live = 1) AS holds,
  EXISTS (SELECT 1 FROM json_each(?) r CROSS JOIN pawl_tasks t
    WHERE t.workflow = r.value ->> 0 AND t.version = r.value ->> 1 AND t.state = ${taskState.ready}) AS ready,
  (SELECT min(due_at) FROM (SELECT (SELECT due_at FROM pawl_tasks t
    WHERE t.workflow = r.value ->> 0 AND t.version = r.value ->> 1 AND t.state = ${taskState.parked}
    AND t.due_at IS NOT NULL ORDER BY t.due_at LIMIT 1) AS due_at FROM json_each(?) r)) AS due_at`;

const markTaskOwned = `UPDATE pawl_tasks SET state = ${taskState.owned}, owner = ?, epoch = ?, deliveries = deliveries + 1,
  fresh = 0 WHERE run_id = ?`;
const markTaskReady = `UPDATE pawl_tasks SET state = ${taskState.ready} WHERE run_id = ?`;
const selectRun = `SELECT ${runColumnsWith(taskState.owned)} FROM pawl_runs r WHERE r.id = ?`;

/**
 * A look without a lock, so that a worker that finds nothing (most polls) does not stand in the way of those that
 * write. Null when there is something to take.
 */
export function readEmptyClaim(db: Connection, { fence, routes }: ClaimRequest, at: number): ClaimResult | null {
  const routeKeys = JSON.stringify(routes.map(({ workflow, version }) => [workflow, version]));
  const row = db.get(selectClaimState, fence.workerId, fence.epoch, routeKeys, routeKeys) as SqlRow;
  if (row.holds === 0) return { kind: "fenced" };
  const nextDueAt = row.due_at === null ? null : Number(row.due_at);
  if (row.ready === 1 || (nextDueAt !== null && nextDueAt <= at)) return null;
  return { kind: "claimed", at, tasks: [], nextDueAt };
}

/** Inside a transaction. */
export function claim(db: Connection, request: ClaimRequest, at: number): ClaimResult {
  const { fence, routes, limit, limitPerRoute } = request;
  if (!holdsFence(db, fence)) return { kind: "fenced" };
  const due = routes.flatMap((route) => dueTasks(db, route, limitPerRoute, at)).sort(byPriorityThenDueAt);
  const taken = due.slice(0, limit);
  for (const task of taken) db.run(markTaskOwned, fence.workerId, fence.epoch, task.run_id);
  for (const task of due.slice(limit)) promote(db, task);
  return {
    kind: "claimed",
    at,
    tasks: taken.flatMap((task) => readClaimed(db, task) ?? []),
    nextDueAt: due.length >= limit ? null : findNextDueAt(db, routes, at),
  };
}

/**
 * The best of what is ready and of what has become due by time, together at most `limit`. Due tasks that are not taken
 * become ready: from then on they are found in the order of their priority, and those behind them get their turn.
 */
function dueTasks(db: Connection, { workflow, version }: Route, limit: number, at: number): SqlRow[] {
  const ready = db.all(selectReady, workflow, version, limit);
  const due = db.all(selectDue, workflow, version, at, limit);
  if (due.length === 0) return ready;
  const candidates = [...ready, ...due].sort(byPriorityThenDueAt);
  for (const task of candidates.slice(limit)) promote(db, task);
  return candidates.slice(0, limit);
}

function promote(db: Connection, task: SqlRow): void {
  if (task.state === taskState.parked) db.run(markTaskReady, task.run_id);
}

/** null when the run's row is gone: that must not keep the worker from the other runs. `verify` reports such a task. */
function readClaimed(db: Connection, task: SqlRow): ClaimedTask | null {
  const row = db.get(selectRun, task.run_id);
  if (row === undefined) return null;
  return {
    run: decodeRun(row),
    deliveries: Number(task.deliveries) + 1,
    pendingMessages: Number(task.pending_messages),
    isFresh: task.fresh === 1,
  };
}

function findNextDueAt(db: Connection, routes: readonly Route[], at: number): number | null {
  let next: number | null = null;
  for (const { workflow, version } of routes) {
    const row = db.get(selectNextDue, workflow, version, at);
    if (row !== undefined && (next === null || Number(row.due_at) < next)) next = Number(row.due_at);
  }
  return next;
}

const byPriorityThenDueAt = (a: SqlRow, b: SqlRow) =>
  Number(b.priority) - Number(a.priority) || Number(a.due_at) - Number(b.due_at);
