/** Taking due tasks: one batch, and before it, while nothing has been found, a look without the write lock. */

import type { Claimed, ClaimRequest, ClaimResult, RunRecord } from "../contract/store.js";
import type { SqlRow } from "../sql/dialect.js";
import { decodeRun, runColumnsWith, taskState } from "../sql/records.js";
import { lookForTasks } from "../sqlite/claim.js";
import type { Result, Statement } from "./driver.js";
import { guardOf, holdsFence, Plan } from "./plan.js";
import { serverNow } from "./server-clock.js";

/** ?1 routes, ?2 limit per route, ?3 now, ?4 limit. */
const ofRoute = "x.workflow = r.value ->> 0 AND x.version = r.value ->> 1";
const task = "SELECT x.rowid AS id, x.priority, x.due_at FROM pawl_tasks x WHERE";

/**
 * The best of what is ready and of what has become due by time, per route and in all. Each index is read only as far as the
 * limit. Of what is due at the same instant, the route that is asked for first comes first. With the rowid the order is
 * total, so that two statements of one transaction find the same.
 */
const candidates = `SELECT t.rowid AS id, r.key AS route FROM json_each(?1) r CROSS JOIN pawl_tasks t WHERE t.rowid IN (
    SELECT id FROM (
      SELECT * FROM (${task} ${ofRoute} AND x.state = ${taskState.ready}
        ORDER BY x.priority DESC, x.due_at, x.rowid LIMIT ?2)
      UNION ALL
      SELECT * FROM (${task} ${ofRoute} AND x.state = ${taskState.parked} AND x.due_at <= ?3
        ORDER BY x.due_at, x.rowid LIMIT ?2)
    ) ORDER BY priority DESC, due_at, id LIMIT ?2
  ) ORDER BY t.priority DESC, t.due_at, r.key, t.rowid LIMIT ?4`;

/** A server's answer has 10 MB at most: inputs beyond this many characters in all are read afterwards. */
const inputBudget = 2_000_000;
const inOrder = "t.priority DESC, t.due_at, c.route, t.rowid";
const inputWithinBudget = `CASE WHEN sum(length(r.input)) OVER (ORDER BY ${inOrder} ROWS UNBOUNDED PRECEDING) <= ${inputBudget}
  THEN r.input END AS input`;

/** A task whose run is gone must not keep the worker from the others; `verify` reports it. */
const selectClaimed = `SELECT ${runColumnsWith(taskState.owned).replace("r.input", inputWithinBudget)},
    t.deliveries, t.mail, t.fresh
  FROM (${candidates}) c CROSS JOIN pawl_tasks t ON t.rowid = c.id CROSS JOIN pawl_runs r ON r.id = t.run_id
  ORDER BY ${inOrder}`;

const ownTasks = `UPDATE pawl_tasks SET state = ${taskState.owned}, owner = ?5, epoch = ?6, deliveries = deliveries + 1,
  fresh = 0 WHERE rowid IN (SELECT id FROM (${candidates}))`;

/**
 * Due tasks that were not taken become ready: from then on they are found in the order of their priority, and those behind
 * them get their turn.
 */
const promoteTasks = `UPDATE pawl_tasks SET state = ${taskState.ready} WHERE rowid IN (
  SELECT t.rowid FROM json_each(?1) r CROSS JOIN pawl_tasks t WHERE t.rowid IN (
    SELECT x.rowid FROM pawl_tasks x WHERE ${ofRoute} AND x.state = ${taskState.parked} AND x.due_at <= ?3
    ORDER BY x.due_at LIMIT ?2))`;

const selectNextDue = `SELECT min(due_at) AS due_at FROM (SELECT (SELECT x.due_at FROM pawl_tasks x
  WHERE ${ofRoute} AND x.state = ${taskState.parked} AND x.due_at > ?2 ORDER BY x.due_at LIMIT 1) AS due_at
  FROM json_each(?1) r)`;

const keysOf = ({ routes }: ClaimRequest) => JSON.stringify(routes.map(({ workflow, version }) => [workflow, version]));

export function lookStatement(request: ClaimRequest): Statement {
  const { workerId, epoch } = request.fence;
  const keys = keysOf(request);
  return { sql: `SELECT l.*, ${serverNow} AS now FROM (${lookForTasks}) l`, args: [workerId, epoch, keys, keys] };
}

/** Null when there is something to take. */
export function nothingToClaim(row: SqlRow, at: number): ClaimResult | null {
  if (row.holds === 0) return { kind: "fenced" };
  const nextDueAt = row.due_at === null ? null : Number(row.due_at);
  if (row.ready === 1 || (nextDueAt !== null && nextDueAt <= at)) return null;
  return { kind: "claimed", at, tasks: [], nextDueAt };
}

export interface ClaimPlan {
  readonly plan: Plan<{ readonly kind: "fenced" }>;
  /** @param readRuns reads the runs whose inputs are not in the results */
  resultOf(
    results: readonly Result[],
    readRuns: (ids: readonly string[]) => Promise<readonly RunRecord[]>,
  ): Promise<ClaimResult>;
}

export function planClaim(request: ClaimRequest, at: number): ClaimPlan {
  const { fence, limit, limitPerRoute } = request;
  const keys = keysOf(request);
  const plan = new Plan<{ readonly kind: "fenced" }>();
  plan.guard({ kind: "fenced" }, guardOf(holdsFence), fence.workerId, fence.epoch);
  const claimedAt = plan.add(selectClaimed, keys, limitPerRoute, at, limit);
  const ownedAt = plan.add(ownTasks, keys, limitPerRoute, at, limit, fence.workerId, fence.epoch);
  plan.add(promoteTasks, keys, limitPerRoute, at);
  const nextDueIndex = plan.add(selectNextDue, keys, at);
  return {
    plan,
    resultOf: async (results, readRuns) => {
      const rows = results[claimedAt]?.rows ?? [];
      const isFull = (results[ownedAt]?.rowsAffected ?? 0) >= limit;
      const dueAt = results[nextDueIndex]?.rows[0]?.due_at ?? null;
      const nextDueAt = isFull || dueAt === null ? null : Number(dueAt);
      return { kind: "claimed", at, tasks: await claimedOf(rows, readRuns), nextDueAt };
    },
  };
}

async function claimedOf(
  rows: readonly SqlRow[],
  readRuns: (ids: readonly string[]) => Promise<readonly RunRecord[]>,
): Promise<Claimed[]> {
  const large = rows.filter((row) => row.input === null).map((row) => row.id as string);
  const read = new Map(large.length === 0 ? [] : (await readRuns(large)).map((run) => [run.id, run]));
  return rows.map((row) => ({
    run: read.get(row.id as string) ?? decodeRun(row),
    deliveries: Number(row.deliveries) + 1,
    mail: Number(row.mail),
    fresh: row.fresh === 1,
  }));
}
