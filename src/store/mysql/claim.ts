/**
 * Taking due tasks.
 *
 * First a look without locks, one statement: which routes have something, and when the next sleeper wakes. An idle
 * worker does nothing else. Then, per route that has something, locked reads that skip what others hold; then the
 * chosen ones become ours, by primary key.
 */

import type { Claimed, ClaimRequest, ClaimResult, Fence, Route } from "../contract/store.js";
import { decodeRun, runColumnsWith, taskState } from "../sql/records.js";
import { type Clock, nowOf } from "./clock.js";
import type { Database } from "./database.js";
import { fenceStatement } from "./look.js";
import type { Transaction } from "./session.js";
import { byKey, forKeys, marks, type Sql, sql, type Value } from "./sql.js";

const { parked, ready, owned } = taskState;

/** The bounds of one route in the index `due`. Parked tasks have rank 0 there, so they are in the order of time. */
const readyOf = `FROM pawl_tasks FORCE INDEX (due) WHERE state = ${ready} AND workflow = ? AND version = ?`;
const parkedOf = `FROM pawl_tasks FORCE INDEX (due) WHERE state = ${parked} AND workflow = ? AND version = ? AND rank_no = 0`;

/** How soon to look again when all that is due was locked by others, who may leave some of it. */
const crowdedMs = 20;

/** A bound for LIMIT, which takes no Infinity. */
const mostPerRead = 10_000;

interface Glance {
  readonly at: number;
  readonly holdsFence: boolean;
  readonly routes: readonly { readonly route: Route; readonly isReady: boolean; readonly isDue: boolean }[];
  readonly nextDueAt: number | null;
}

export async function claim(db: Database, request: ClaimRequest, clock: Clock): Promise<ClaimResult> {
  const glance = await glanceAt(db, request, nowOf(clock));
  const { at, nextDueAt } = glance;
  if (!glance.holdsFence) return { kind: "fenced" };
  const hot = glance.routes.filter(({ isReady, isDue }) => isReady || isDue);
  if (hot.length === 0 || request.limit <= 0) return { kind: "claimed", at, tasks: [], nextDueAt };
  const tasks = await db.transaction((transaction) => take(transaction, request, hot, at));
  if (tasks === "fenced") return { kind: "fenced" };
  if (tasks.length >= request.limit) return { kind: "claimed", at, tasks, nextDueAt: null };
  const again = tasks.length === 0 ? at + crowdedMs : nextDueAt;
  return {
    kind: "claimed",
    at,
    tasks,
    nextDueAt: nextDueAt === null ? again : Math.min(nextDueAt, again ?? nextDueAt),
  };
}

async function glanceAt(db: Database, { fence, ...request }: ClaimRequest, now: string): Promise<Glance> {
  // A route that is named twice would be read twice: our own locks are not skipped.
  const routes = [
    ...new Map(request.routes.map((route) => [JSON.stringify([route.workflow, route.version]), route])).values(),
  ];
  const holds = "EXISTS (SELECT 1 FROM pawl_workers WHERE id = ? AND epoch = ? AND live = 1)";
  const values: Value[] = [fence.workerId, fence.epoch];
  const parts = [`SELECT -1 AS route, ${now} AS is_ready, ${holds} AS is_due, NULL AS next_due`];
  routes.forEach(({ workflow, version }, index) => {
    parts.push(
      `SELECT ${index}, EXISTS (SELECT 1 ${readyOf}), EXISTS (SELECT 1 ${parkedOf} AND due_at <= ${now}), ` +
        `(SELECT due_at ${parkedOf} AND due_at > ${now} ORDER BY due_at LIMIT 1)`,
    );
    values.push(workflow, version, workflow, version, workflow, version);
  });
  const [result] = await db.read([sql(parts.join(" UNION ALL "), values)]);
  const [head, ...rest] = result?.rows ?? [];
  const sleepers = rest.flatMap((row) => (row.next_due === null ? [] : Number(row.next_due)));
  return {
    at: Number(head?.is_ready),
    holdsFence: Number(head?.is_due) === 1,
    routes: rest.map((row) => ({
      route: routes[Number(row.route)] as Route,
      isReady: Number(row.is_ready) === 1,
      isDue: Number(row.is_due) === 1,
    })),
    nextDueAt: sleepers.length === 0 ? null : Math.min(...sleepers),
  };
}

interface Candidate {
  readonly runId: string;
  readonly route: number;
  readonly priority: number;
  readonly dueAt: number;
  readonly wasParked: boolean;
  readonly deliveries: number;
  readonly mail: number;
  readonly fresh: boolean;
}

async function take(
  transaction: Transaction,
  { fence, limit, limitPerRoute }: ClaimRequest,
  hot: Glance["routes"],
  at: number,
): Promise<readonly Claimed[] | "fenced"> {
  const most = Math.min(limit, limitPerRoute, mostPerRead);
  const reads = hot.flatMap(({ route, isReady, isDue }, index) =>
    lockedReads(route, { isReady, isDue, index, at, most }),
  );
  const [fenceRow, ...results] = await transaction.run([fenceStatement(fence), ...reads]);
  const candidates = results.flatMap(({ rows }) => rows.map(candidateOf));
  if (fenceRow?.rows.length !== 1 || candidates.length === 0) {
    await transaction.rollback();
    return fenceRow?.rows.length === 1 ? [] : "fenced";
  }
  const { chosen, left } = choose(candidates, limit, limitPerRoute);
  const wakes = left.filter(({ wasParked }) => wasParked).map(({ runId }) => runId);
  const ids = chosen.map(({ runId }) => runId);
  const owns = ownStatements(ids, fence);
  const reading = readRuns(ids);
  const done = await transaction.commit([...owns, ...wakeStatements(wakes), ...reading]);
  const rows = done.slice(done.length - reading.length).flatMap((result) => result.rows);
  const runs = new Map(rows.map((row) => [row.id as string, decodeRun(row)]));
  return chosen.flatMap(({ runId, deliveries, mail, fresh }) => {
    const run = runs.get(runId);
    return run === undefined ? [] : { run, deliveries: deliveries + 1, mail, fresh };
  });
}

function lockedReads(
  { workflow, version }: Route,
  about: { isReady: boolean; isDue: boolean; index: number; at: number; most: number },
): Sql[] {
  const { isReady, isDue, index, at, most } = about;
  const columns = `SELECT run_id, ${index} AS route, priority, due_at, state, deliveries, mail, fresh`;
  const end = `LIMIT ${most} FOR UPDATE SKIP LOCKED`;
  const reads: Sql[] = [];
  if (isDue) {
    reads.push(sql(`${columns} ${parkedOf} AND due_at <= ${at} ORDER BY due_at ${end}`, [workflow, version]));
  }
  if (isReady) reads.push(sql(`${columns} ${readyOf} ORDER BY rank_no, due_at ${end}`, [workflow, version]));
  return reads;
}

const candidateOf = (row: Readonly<Record<string, unknown>>): Candidate => ({
  runId: row.run_id as string,
  route: Number(row.route),
  priority: Number(row.priority),
  dueAt: Number(row.due_at),
  wasParked: Number(row.state) === parked,
  deliveries: Number(row.deliveries),
  mail: Number(row.mail),
  fresh: Number(row.fresh) === 1,
});

/** Higher priority first, then those due earlier; at most so many of a route. */
function choose(candidates: Candidate[], limit: number, limitPerRoute: number) {
  candidates.sort((a, b) => b.priority - a.priority || a.dueAt - b.dueAt);
  const perRoute = new Map<number, number>();
  const chosen: Candidate[] = [];
  const left: Candidate[] = [];
  for (const candidate of candidates) {
    const taken = perRoute.get(candidate.route) ?? 0;
    const fits = chosen.length < limit && taken < limitPerRoute;
    (fits ? chosen : left).push(candidate);
    if (fits) perRoute.set(candidate.route, taken + 1);
  }
  return { chosen, left };
}

function ownStatements(runIds: readonly string[], { workerId, epoch }: Fence): Sql[] {
  const set = `state = ${owned}, rank_no = 0, owner = ?, epoch = ?, deliveries = deliveries + 1, fresh = 0`;
  return forKeys(runIds, (part) =>
    sql(`UPDATE pawl_tasks ${byKey} SET ${set} WHERE run_id IN (${marks(part)})`, [workerId, epoch, ...part]),
  );
}

/** Due, but not taken this time: from now on they stand in line by priority. */
function wakeStatements(runIds: readonly string[]): Sql[] {
  return forKeys(runIds, (part) =>
    sql(`UPDATE pawl_tasks ${byKey} SET state = ${ready}, rank_no = -priority WHERE run_id IN (${marks(part)})`, part),
  );
}

function readRuns(runIds: readonly string[]): Sql[] {
  const columns = runColumnsWith(owned);
  return forKeys(runIds, (part) => sql(`SELECT ${columns} FROM pawl_runs r WHERE r.id IN (${marks(part)})`, part));
}
