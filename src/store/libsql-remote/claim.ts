/**
 * Claims due tasks in one batch. After a claim that found no task, the store first sends a read that needs no write
 * lock.
 */

import type { ClaimedTask, ClaimRequest, ClaimResult, RunRecord } from "../contract/store.js";
import type { SqlRow } from "../sql/dialect.js";
import { decodeRun, runColumnsWith, taskState } from "../sql/records.js";
import { selectClaimState } from "../sqlite/claim.js";
import type { Result, Statement } from "./driver.js";
import { serverNow } from "./server-clock.js";
import { guardStatement, holdsFence, StatementPlan } from "./statement-plan.js";

/**
 * The statements that find tasks to claim have the parameters ?1 routes (JSON), ?2 limit per route, ?3 now, ?4 limit.
 */
const matchesRoute = "x.workflow = r.value ->> 0 AND x.version = r.value ->> 1";
const selectTask = "SELECT x.rowid AS id, x.priority, x.due_at FROM pawl_tasks x WHERE";

/**
 * Selects the tasks to claim from the ready tasks and the parked tasks that are due: up to ?2 of each route and ?4 in
 * all, by priority and then by due time. Each index is read only up to the limit. Among tasks that are due at the same
 * instant, those of the first requested route come first. The rowid makes the order total, so that two statements of
 * one transaction find the same tasks.
 */
const selectCandidates = `SELECT t.rowid AS id, r.key AS route FROM json_each(?1) r CROSS JOIN pawl_tasks t WHERE t.rowid IN (
    SELECT id FROM (
      SELECT * FROM (${selectTask} ${matchesRoute} AND x.state = ${taskState.ready}
        ORDER BY x.priority DESC, x.due_at, x.rowid LIMIT ?2)
      UNION ALL
      SELECT * FROM (${selectTask} ${matchesRoute} AND x.state = ${taskState.parked} AND x.due_at <= ?3
        ORDER BY x.due_at, x.rowid LIMIT ?2)
    ) ORDER BY priority DESC, due_at, id LIMIT ?2
  ) ORDER BY t.priority DESC, t.due_at, r.key, t.rowid LIMIT ?4`;

/** A server's response is limited to 10 MB, so inputs beyond this total of characters are read afterwards. */
const maxInputCharacters = 2_000_000;
const claimOrder = "t.priority DESC, t.due_at, c.route, t.rowid";
const inputWithinBudget = `CASE WHEN sum(length(r.input)) OVER (ORDER BY ${claimOrder} ROWS UNBOUNDED PRECEDING) <= ${maxInputCharacters}
  THEN r.input END AS input`;

/** A task without a run is left out, so that the worker still gets its other tasks; `verify` reports such a task. */
const selectClaimed = `SELECT ${runColumnsWith(taskState.owned).replace("r.input", inputWithinBudget)},
    t.workflow AS route, t.deliveries, t.pending_messages, t.fresh
  FROM (${selectCandidates}) c CROSS JOIN pawl_tasks t ON t.rowid = c.id CROSS JOIN pawl_runs r ON r.id = t.run_id
  ORDER BY ${claimOrder}`;

const markTasksOwned = `UPDATE pawl_tasks SET state = ${taskState.owned}, owner = ?5, epoch = ?6, deliveries = deliveries + 1,
  fresh = 0 WHERE rowid IN (SELECT id FROM (${selectCandidates}))`;

/**
 * Makes parked tasks that are due but were not claimed ready: from then on claims order them by priority, and the next
 * read of parked tasks reaches those that became due later.
 */
const promoteTasks = `UPDATE pawl_tasks SET state = ${taskState.ready} WHERE rowid IN (
  SELECT t.rowid FROM json_each(?1) r CROSS JOIN pawl_tasks t WHERE t.rowid IN (
    SELECT x.rowid FROM pawl_tasks x WHERE ${matchesRoute} AND x.state = ${taskState.parked} AND x.due_at <= ?3
    ORDER BY x.due_at LIMIT ?2))`;

const selectNextDue = `SELECT min(due_at) AS due_at FROM (SELECT (SELECT x.due_at FROM pawl_tasks x
  WHERE ${matchesRoute} AND x.state = ${taskState.parked} AND x.due_at > ?2 ORDER BY x.due_at LIMIT 1) AS due_at
  FROM json_each(?1) r)`;

const routeKeysOf = ({ routes }: ClaimRequest) =>
  JSON.stringify(routes.map(({ workflow, version }) => [workflow, version]));

export function claimStateStatement(request: ClaimRequest): Statement {
  const { workerId, epoch } = request.fence;
  const keys = routeKeysOf(request);
  return { sql: `SELECT l.*, ${serverNow} AS now FROM (${selectClaimState}) l`, args: [workerId, epoch, keys, keys] };
}

/** Returns null when there are tasks to claim. */
export function emptyClaimOf(row: SqlRow, at: number): ClaimResult | null {
  if (row.fence_is_valid === 0) return { kind: "fenced" };
  const nextDueAt = row.next_due_at === null ? null : Number(row.next_due_at);
  if (row.has_ready_tasks === 1 || (nextDueAt !== null && nextDueAt <= at)) return null;
  return { kind: "claimed", at, tasks: [], nextDueAt };
}

export interface ClaimPlan {
  readonly plan: StatementPlan<{ readonly kind: "fenced" }>;
  /** @param readRuns reads the runs whose inputs were too large for the results */
  readResult(
    results: readonly Result[],
    readRuns: (ids: readonly string[]) => Promise<readonly RunRecord[]>,
  ): Promise<ClaimResult>;
}

export function planClaim(request: ClaimRequest, at: number): ClaimPlan {
  const { fence, limit, limitPerRoute } = request;
  const keys = routeKeysOf(request);
  const plan = new StatementPlan<{ readonly kind: "fenced" }>();
  plan.addGuard({ kind: "fenced" }, guardStatement(holdsFence), fence.workerId, fence.epoch);
  const claimedIndex = plan.add(selectClaimed, keys, limitPerRoute, at, limit);
  const ownedIndex = plan.add(markTasksOwned, keys, limitPerRoute, at, limit, fence.workerId, fence.epoch);
  plan.add(promoteTasks, keys, limitPerRoute, at);
  const nextDueIndex = plan.add(selectNextDue, keys, at);
  return {
    plan,
    readResult: async (results, readRuns) => {
      const rows = results[claimedIndex]?.rows ?? [];
      const isFull = (results[ownedIndex]?.rowsAffected ?? 0) >= limit;
      const dueAt = results[nextDueIndex]?.rows[0]?.due_at ?? null;
      const nextDueAt = isFull || dueAt === null ? null : Number(dueAt);
      return { kind: "claimed", at, tasks: await readClaimedTasks(rows, readRuns), nextDueAt };
    },
  };
}

async function readClaimedTasks(
  rows: readonly SqlRow[],
  readRuns: (ids: readonly string[]) => Promise<readonly RunRecord[]>,
): Promise<ClaimedTask[]> {
  const idsWithoutInput = rows.filter((row) => row.input === null).map((row) => row.id as string);
  const runsById = new Map(
    idsWithoutInput.length === 0 ? [] : (await readRuns(idsWithoutInput)).map((run) => [run.id, run]),
  );
  return rows.map((row) => ({
    run: runsById.get(row.id as string) ?? decodeRun(row),
    route: row.route as string,
    deliveries: Number(row.deliveries) + 1,
    pendingMessages: Number(row.pending_messages),
    isFresh: row.fresh === 1,
  }));
}
