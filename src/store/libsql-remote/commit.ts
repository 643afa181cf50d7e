/** A batch of transitions as one guarded batch of statements, and what its results say. The order of work is that of sqlite/commit.ts. */

import type { Batch, CommitResult, Fence, Transition } from "../contract/store.js";
import { packEvents } from "../shared/event-rows.js";
import {
  cursorValues,
  deleteTask,
  dueOf,
  eventColumns,
  isFree,
  keepTask,
  markUsed,
  parkRun,
  parkTask,
  writeCursor,
} from "../sqlite/commit.js";
import type { Result } from "./driver.js";
import { planDrain, planMail, planRelease } from "./mail.js";
import { guardOf, holdsFence, Plan } from "./plan.js";
import { planChildren, planStarts } from "./starts.js";

type Refused = Exclude<CommitResult, { kind: "committed" }>;

export interface CommitPlan {
  readonly plan: Plan<Refused>;
  resultOf(results: readonly Result[]): CommitResult;
}

/** A worker must own the run, a client must find it unowned, without undrained messages. */
const isOurs = "SELECT 1 FROM pawl_tasks WHERE run_id = ? AND owner = ? AND epoch = ?";
const guardIsOurs = guardOf(`EXISTS (${isOurs})`);
const guardIsFree = guardOf(`EXISTS (${isFree})`);

/** The hot one: all that an inline step writes. It is refused unless the log ends where the writer thinks it does. */
const insertEventsIf = (mayWrite: string) => `INSERT INTO pawl_events (${eventColumns})
  SELECT CASE WHEN EXISTS (${mayWrite})
    AND coalesce((SELECT seq + span FROM pawl_events WHERE run_id = ?1 ORDER BY seq DESC LIMIT 1), 1) = ?2
    THEN ?1 END, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9`;
const insertEventsIfOurs = insertEventsIf("SELECT 1 FROM pawl_tasks WHERE run_id = ?1 AND owner = ?10 AND epoch = ?11");
const insertEventsIfFree = insertEventsIf(isFree.replace("?", "?1"));

/** The task before was parked, or mail keeps the run with its owner. */
const parkRunIfParked = `${parkRun} AND changes() = 1`;
/** The task before was deleted, or there is mail, and the run cannot end yet. */
const finishRunIfDeleted = `UPDATE pawl_runs SET status = CASE WHEN changes() = 1 THEN ? END, output = ?, error = ?,
  waiting = ?, started_at = coalesce(started_at, ?), finished_at = ?, hero_key = NULL WHERE id = ?`;

/** By an index that is nearly always empty. */
const selectMailed = "SELECT run_id FROM pawl_tasks WHERE owner = ? AND owner IS NOT NULL AND mail > 0";

export function planCommit({ fence, transitions, starts }: Batch, at: number): CommitPlan {
  const plan = new Plan<Refused>();
  const parked = new Map<number, string>();
  if (fence !== null) plan.guard({ kind: "fenced" }, guardOf(holdsFence), fence.workerId, fence.epoch);
  for (const transition of transitions) {
    planAppend(plan, transition, fence, at);
    planEffects(plan, transition, fence, at);
    const index = planNext(plan, transition, fence, at);
    if (index !== null) parked.set(index, transition.runId);
  }
  const stay = fence === null ? [] : transitions.filter(({ next }) => next.kind === "keep");
  const mailedAt = stay.length === 0 || fence === null ? null : plan.add(selectMailed, fence.workerId);
  const readRefusals = planStarts(plan, starts, fence, at);
  return {
    plan,
    resultOf: (results) => ({
      kind: "committed",
      at,
      kept: [...parked].flatMap(([index, runId]) => (results[index]?.rowsAffected === 0 ? [runId] : [])),
      mailed: mailedAt === null ? [] : mailedAmong(stay, results[mailedAt]),
      refused: readRefusals(results),
    }),
  };
}

function planAppend(plan: Plan<Refused>, transition: Transition, fence: Fence | null, at: number): void {
  const { runId, after, events } = transition;
  const conflict = { kind: "conflict", runId } as const;
  const writer = fence === null ? [] : [fence.workerId, fence.epoch];
  if (events.length === 0) {
    plan.guard(conflict, fence === null ? guardIsFree : guardIsOurs, runId, ...writer);
    return;
  }
  const { span, type, node, attempt, outcome, data } = packEvents(events);
  const row = [runId, after + 1, span, type, node, attempt, outcome, data, at];
  plan.guard(conflict, fence === null ? insertEventsIfFree : insertEventsIfOurs, ...row, ...writer);
}

function planEffects(plan: Plan<Refused>, transition: Transition, fence: Fence | null, at: number): void {
  const { runId, drained, cursors, starts, mail, release } = transition;
  if (drained.length > 0) planDrain(plan, runId, drained);
  for (const write of cursors) plan.add(writeCursor, ...cursorValues(runId, write, at));
  planChildren(plan, starts, fence, at);
  planMail(plan, mail, at);
  planRelease(plan, release, at);
}

/** What becomes of the task and the run's row. The number of the statement that changes nothing if mail keeps the run. */
function planNext(plan: Plan<Refused>, transition: Transition, fence: Fence | null, at: number): number | null {
  const { runId, next, after, events } = transition;
  if (next.kind === "keep") {
    // A worker's run is no longer fresh since it was claimed.
    if (fence === null) plan.add(markUsed, runId);
    return null;
  }
  const startedAt = next.startedAt === "now" ? at : next.startedAt;
  if (next.kind === "finish") {
    const { status, output, error } = next;
    plan.add(deleteTask, runId);
    const unread = { kind: "conflict", runId, unread: true } as const;
    const end = [status, output, error, String(after + events.length), startedAt, at];
    plan.guard(unread, finishRunIfDeleted, ...end, runId);
    return null;
  }
  const { dueAt, state } = dueOf(next, at);
  const parked = next.keepsDue
    ? plan.add(keepTask, runId)
    : plan.add(parkTask, state, dueAt, next.route ?? null, next.priority ?? null, runId);
  plan.add(parkRunIfParked, next.status, next.waiting, startedAt, runId);
  return parked;
}

function mailedAmong(transitions: readonly Transition[], result: Result | undefined): string[] {
  const mailed = new Set(result?.rows.map((row) => row.run_id));
  return transitions.flatMap(({ runId }) => (mailed.has(runId) ? [runId] : []));
}
