/**
 * Claims due tasks for a worker.
 *
 * First, one statement without locks reads which routes have due tasks and when the next parked task becomes due. An
 * idle worker does nothing else. Then locking reads find the due tasks of each such route and skip tasks that are
 * locked. Finally an UPDATE by primary key sets the owner of the chosen tasks.
 */

import type { ClaimedTask, ClaimRequest, ClaimResult, Fence, Route } from "../contract/store.js";
import { decodeRun, runColumnsWith, taskState } from "../sql/records.js";
import { type Clock, nowExpression } from "./clock.js";
import { fenceStatement } from "./commit-snapshot.js";
import type { Database } from "./database.js";
import type { Transaction } from "./session.js";
import { forcePrimaryKey, placeholders, type Sql, sql, statementsPerKeyPart, type Value } from "./sql.js";

const { parked, ready, owned } = taskState;

/**
 * These clauses read the tasks of one route from the index `due`. Parked tasks have rank_no 0, so the index orders them
 * by due time.
 */
const fromReadyTasks = `FROM pawl_tasks FORCE INDEX (due) WHERE state = ${ready} AND workflow = ? AND version = ?`;
const fromParkedTasks = `FROM pawl_tasks FORCE INDEX (due) WHERE state = ${parked} AND workflow = ? AND version = ? AND rank_no = 0`;

/** When to claim again if other workers had locked all due tasks: they may not claim all that they have locked. */
const contendedRetryMs = 20;

/** An upper bound for LIMIT, as a request's limit may be Infinity. */
const maxRowsPerRead = 10_000;

interface ClaimPeek {
  readonly at: number;
  readonly holdsFence: boolean;
  readonly routes: readonly { readonly route: Route; readonly hasReady: boolean; readonly hasDue: boolean }[];
  readonly nextDueAt: number | null;
}

export async function claim(db: Database, request: ClaimRequest, clock: Clock): Promise<ClaimResult> {
  const peek = await peekClaimable(db, request, nowExpression(clock));
  const { at, nextDueAt } = peek;
  if (!peek.holdsFence) return { kind: "fenced" };
  const claimableRoutes = peek.routes.filter(({ hasReady, hasDue }) => hasReady || hasDue);
  if (claimableRoutes.length === 0 || request.limit <= 0) return { kind: "claimed", at, tasks: [], nextDueAt };
  const tasks = await db.transaction((transaction) => claimTasks(transaction, request, claimableRoutes, at));
  if (tasks === "fenced") return { kind: "fenced" };
  if (tasks.length >= request.limit) return { kind: "claimed", at, tasks, nextDueAt: null };
  const retryAt = tasks.length === 0 ? at + contendedRetryMs : nextDueAt;
  return {
    kind: "claimed",
    at,
    tasks,
    nextDueAt: nextDueAt === null ? retryAt : Math.min(nextDueAt, retryAt ?? nextDueAt),
  };
}

async function peekClaimable(db: Database, { fence, ...request }: ClaimRequest, now: string): Promise<ClaimPeek> {
  // A route that is listed twice would return its tasks twice, because SKIP LOCKED does not skip rows that the same
  // transaction has locked.
  const routes = [
    ...new Map(request.routes.map((route) => [JSON.stringify([route.workflow, route.version]), route])).values(),
  ];
  const holdsFence = "EXISTS (SELECT 1 FROM pawl_workers WHERE id = ? AND epoch = ? AND live = 1)";
  const values: Value[] = [fence.workerId, fence.epoch];
  // The first row has the time and the fence, the others have one route each.
  const selects = [
    `SELECT ${now} AS at, ${holdsFence} AS fence_is_valid, -1 AS route, 0 AS has_ready, 0 AS has_due, NULL AS next_due_at`,
  ];
  routes.forEach(({ workflow, version }, index) => {
    selects.push(
      `SELECT 0, 0, ${index}, EXISTS (SELECT 1 ${fromReadyTasks}), EXISTS (SELECT 1 ${fromParkedTasks} AND due_at <= ${now}), ` +
        `(SELECT due_at ${fromParkedTasks} AND due_at > ${now} ORDER BY due_at LIMIT 1)`,
    );
    values.push(workflow, version, workflow, version, workflow, version);
  });
  const [result] = await db.read([sql(selects.join(" UNION ALL "), values)]);
  const [summaryRow, ...routeRows] = result?.rows ?? [];
  const nextDueTimes = routeRows.flatMap((row) => (row.next_due_at === null ? [] : Number(row.next_due_at)));
  return {
    at: Number(summaryRow?.at),
    holdsFence: Number(summaryRow?.fence_is_valid) === 1,
    routes: routeRows.map((row) => ({
      route: routes[Number(row.route)] as Route,
      hasReady: Number(row.has_ready) === 1,
      hasDue: Number(row.has_due) === 1,
    })),
    nextDueAt: nextDueTimes.length === 0 ? null : Math.min(...nextDueTimes),
  };
}

interface Candidate {
  readonly runId: string;
  readonly route: number;
  readonly priority: number;
  readonly dueAt: number;
  readonly wasParked: boolean;
  readonly deliveries: number;
  readonly pendingMessages: number;
  readonly isFresh: boolean;
}

async function claimTasks(
  transaction: Transaction,
  { fence, limit, limitPerRoute }: ClaimRequest,
  claimableRoutes: ClaimPeek["routes"],
  at: number,
): Promise<readonly ClaimedTask[] | "fenced"> {
  const readLimit = Math.min(limit, limitPerRoute, maxRowsPerRead);
  const reads = claimableRoutes.flatMap(({ route, hasReady, hasDue }, index) =>
    lockedReads(route, { hasReady, hasDue, index, at, readLimit }),
  );
  const [fenceRow, ...results] = await transaction.run([fenceStatement(fence), ...reads]);
  const candidates = results.flatMap(({ rows }) => rows.map(candidateOf));
  if (fenceRow?.rows.length !== 1 || candidates.length === 0) {
    await transaction.rollback();
    return fenceRow?.rows.length === 1 ? [] : "fenced";
  }
  const { chosen, notChosen } = chooseCandidates(candidates, limit, limitPerRoute);
  const promotedIds = notChosen.filter(({ wasParked }) => wasParked).map(({ runId }) => runId);
  const ids = chosen.map(({ runId }) => runId);
  const ownerUpdates = setOwnerStatements(ids, fence);
  const runReads = selectRunStatements(ids);
  const commitResults = await transaction.commit([...ownerUpdates, ...promoteStatements(promotedIds), ...runReads]);
  const rows = commitResults.slice(commitResults.length - runReads.length).flatMap((result) => result.rows);
  const runs = new Map(rows.map((row) => [row.id as string, decodeRun(row)]));
  return chosen.flatMap(({ runId, route: index, deliveries, pendingMessages, isFresh }) => {
    const run = runs.get(runId);
    const route = claimableRoutes[index]?.route.workflow as string;
    return run === undefined ? [] : { run, route, deliveries: deliveries + 1, pendingMessages, isFresh };
  });
}

function lockedReads(
  { workflow, version }: Route,
  options: { hasReady: boolean; hasDue: boolean; index: number; at: number; readLimit: number },
): Sql[] {
  const { hasReady, hasDue, index, at, readLimit } = options;
  const columns = `SELECT run_id, ${index} AS route, priority, due_at, state, deliveries, pending_messages, fresh`;
  const limitClause = `LIMIT ${readLimit} FOR UPDATE SKIP LOCKED`;
  const reads: Sql[] = [];
  if (hasDue) {
    reads.push(
      sql(`${columns} ${fromParkedTasks} AND due_at <= ${at} ORDER BY due_at ${limitClause}`, [workflow, version]),
    );
  }
  if (hasReady)
    reads.push(sql(`${columns} ${fromReadyTasks} ORDER BY rank_no, due_at ${limitClause}`, [workflow, version]));
  return reads;
}

const candidateOf = (row: Readonly<Record<string, unknown>>): Candidate => ({
  runId: row.run_id as string,
  route: Number(row.route),
  priority: Number(row.priority),
  dueAt: Number(row.due_at),
  wasParked: Number(row.state) === parked,
  deliveries: Number(row.deliveries),
  pendingMessages: Number(row.pending_messages),
  isFresh: Number(row.fresh) === 1,
});

/** Chooses by higher priority, then by earlier due time, within both limits. */
function chooseCandidates(candidates: Candidate[], limit: number, limitPerRoute: number) {
  candidates.sort((a, b) => b.priority - a.priority || a.dueAt - b.dueAt);
  const chosenCountByRoute = new Map<number, number>();
  const chosen: Candidate[] = [];
  const notChosen: Candidate[] = [];
  for (const candidate of candidates) {
    const chosenOfRoute = chosenCountByRoute.get(candidate.route) ?? 0;
    const fits = chosen.length < limit && chosenOfRoute < limitPerRoute;
    (fits ? chosen : notChosen).push(candidate);
    if (fits) chosenCountByRoute.set(candidate.route, chosenOfRoute + 1);
  }
  return { chosen, notChosen };
}

function setOwnerStatements(runIds: readonly string[], { workerId, epoch }: Fence): Sql[] {
  const set = `state = ${owned}, rank_no = 0, owner = ?, epoch = ?, deliveries = deliveries + 1, fresh = 0`;
  return statementsPerKeyPart(runIds, (part) =>
    sql(`UPDATE pawl_tasks ${forcePrimaryKey} SET ${set} WHERE run_id IN (${placeholders(part)})`, [
      workerId,
      epoch,
      ...part,
    ]),
  );
}

/** Makes due tasks that were not claimed ready, so that from now on they are ordered by priority. */
function promoteStatements(runIds: readonly string[]): Sql[] {
  return statementsPerKeyPart(runIds, (part) =>
    sql(
      `UPDATE pawl_tasks ${forcePrimaryKey} SET state = ${ready}, rank_no = -priority WHERE run_id IN (${placeholders(part)})`,
      part,
    ),
  );
}

function selectRunStatements(runIds: readonly string[]): Sql[] {
  const columns = runColumnsWith(owned);
  return statementsPerKeyPart(runIds, (part) =>
    sql(`SELECT ${columns} FROM pawl_runs r WHERE r.id IN (${placeholders(part)})`, part),
  );
}
