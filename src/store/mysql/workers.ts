/** Registers, renews and reaps workers. Leases always use the server's real clock, never a virtual one. */

import type { Fence, HeartbeatResult, ScheduleInterest, WorkerInfo, WorkerLoad } from "../contract/store.js";
import { nextLookSql } from "../sql/limits/looks.js";
import { nextScheduleSql, noInterest } from "../sql/next-schedule.js";
import { encodeLoad, numberOrNull, taskState } from "../sql/records.js";
import { nextStartDeadlineSql } from "../sql/start-deadlines.js";
import { serverNow } from "./clock.js";
import type { Database } from "./database.js";
import type { Session } from "./session.js";
import { forcePrimaryKey, placeholders, type Sql, sql, statementsPerKeyPart } from "./sql.js";

const matchesFence = "id = ? AND epoch = ? AND live = 1";
const hasExpiredLease = `live = 1 AND heartbeat_at + lease_ms < ${serverNow}`;

/**
 * Scans all owned tasks, which are one range of the index `due`. Their number is limited by how many runs the live
 * workers can execute at a time.
 */
const selectOwnedTasks = (workerId: string, extraCondition = ""): Sql =>
  sql(`SELECT run_id FROM pawl_tasks WHERE state = ${taskState.owned} AND owner = ?${extraCondition} ORDER BY run_id`, [
    workerId,
  ]);

/** Registers the worker and makes the tasks ready that its earlier epochs still own. */
export async function registerWorker(
  db: Database,
  worker: WorkerInfo,
  now: string,
): Promise<{ readonly fence: Fence; readonly hasFreedTasks: boolean }> {
  const { id, name, host, pid, port, routes, leaseMs, scheduleSet = null } = worker;
  const columns = "id, name, host, pid, port, routes, lease_ms, schedule_set, epoch, live, started_at, heartbeat_at";
  const overwrittenColumns = [
    "name",
    "host",
    "pid",
    "port",
    "routes",
    "lease_ms",
    "schedule_set",
    "live",
    "started_at",
    "heartbeat_at",
  ];
  const updates = overwrittenColumns.map((column) => `${column} = VALUES(${column})`).join(", ");
  return db.transaction(async (transaction) => {
    const [, row, tasks] = await transaction.run([
      sql(
        `INSERT INTO pawl_workers (${columns}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, 1, 1, ${serverNow}, ${serverNow}) ` +
          `ON DUPLICATE KEY UPDATE epoch = epoch + 1, executing = NULL, loop_lag_ms = NULL, ${updates}`,
        [id, name, host, pid, port, JSON.stringify(routes), leaseMs, scheduleSet],
      ),
      sql("SELECT epoch FROM pawl_workers WHERE id = ?", [id]),
      selectOwnedTasks(id),
    ]);
    const runIds = tasks?.rows.map((task) => task.run_id as string) ?? [];
    const epoch = Number(row?.rows[0]?.epoch);
    const freeSlots = epoch > 1 ? [deleteSlotsOf(id)] : [];
    await transaction.commit([...freeStatements(id, runIds, now), ...freeSlots]);
    return { fence: { workerId: id, epoch }, hasFreedTasks: runIds.length > 0 };
  });
}

/** What the worker says with a heartbeat. */
interface HeartbeatContent {
  readonly load: WorkerLoad | undefined;
  readonly schedules: ScheduleInterest | undefined;
}

/** The result of a heartbeat under a dead fence. */
const fencedHeartbeat = {
  isAlive: false,
  ownedWithMessages: [],
  reapedWorkerIds: [],
  pausedQueues: [],
  nextScheduleInMs: null,
  nextStartDeadlineInMs: null,
  nextOfferInMs: null,
  scheduleSetInForce: null,
  hasFreedTasks: false,
};

export async function heartbeat(
  db: Database,
  { workerId, epoch }: Fence,
  { load, schedules: { app, setKey } = noInterest }: HeartbeatContent,
  now: () => string,
): Promise<HeartbeatResult & { readonly hasFreedTasks: boolean }> {
  // Renewing a lease twice is harmless, so these statements are retried like reads when the answer is lost.
  const [renewed, expired, withMessages, paused, scheduled] = await db.read([
    sql(
      `UPDATE pawl_workers SET heartbeat_at = ${serverNow}, executing = coalesce(?, executing), loop_lag_ms = coalesce(?, loop_lag_ms) WHERE ${matchesFence}`,
      [...encodeLoad(load), workerId, epoch],
    ),
    sql(`SELECT id FROM pawl_workers WHERE ${hasExpiredLease}`),
    selectOwnedTasks(workerId, " AND pending_messages > 0"),
    sql("SELECT name FROM pawl_queues ORDER BY name"),
    sql(
      `SELECT ${nextScheduleSql("pawl_schedules", "''", "?")} - ${now()} AS next_in, (SELECT a.set_key FROM pawl_schedule_apps a WHERE a.app = ?) AS set_key, ${nextStartDeadlineSql("pawl_start_deadlines")} - ${now()} AS next_start_deadline_in, ${nextLookSql("pawl_lanes")} - ${now()} AS next_offer_in`,
      [setKey, app],
    ),
  ]);
  if (renewed?.affectedRows !== 1) return fencedHeartbeat;
  const runsWithMessages = withMessages?.rows.map((row) => row.run_id as string) ?? [];
  const pausedQueues = paused?.rows.map((row) => row.name as string) ?? [];
  const nextScheduleInMs = numberOrNull(scheduled?.rows[0]?.next_in);
  const scheduleSetInForce = (scheduled?.rows[0]?.set_key ?? null) as string | null;
  const report = {
    isAlive: true,
    ownedWithMessages: runsWithMessages,
    pausedQueues,
    nextScheduleInMs,
    nextStartDeadlineInMs: numberOrNull(scheduled?.rows[0]?.next_start_deadline_in),
    nextOfferInMs: numberOrNull(scheduled?.rows[0]?.next_offer_in),
    scheduleSetInForce,
  };
  if (expired?.rows.length === 0) return { ...report, reapedWorkerIds: [], hasFreedTasks: false };
  return { ...report, ...(await reap(db, workerId, now())) };
}

/**
 * Marks workers with an expired lease dead and frees their tasks in one transaction. The worker that does this has just
 * renewed its own lease; on a very busy machine, a short lease may have expired again meanwhile. SKIP LOCKED passes over a worker
 * whose commit has a lock on its row: such a worker is still alive.
 */
async function reap(
  db: Database,
  callerId: string,
  now: string,
): Promise<{ readonly reapedWorkerIds: string[]; readonly hasFreedTasks: boolean }> {
  return db.transaction(async (transaction) => {
    const selectExpired = sql(
      `SELECT id FROM pawl_workers WHERE ${hasExpiredLease} AND id <> ? ORDER BY id FOR UPDATE SKIP LOCKED`,
      [callerId],
    );
    const [expired] = await transaction.run([selectExpired]);
    const reapedWorkerIds = expired?.rows.map((row) => row.id as string) ?? [];
    const hasFreedTasks = await markDead(transaction, reapedWorkerIds, now);
    await transaction.commit([]);
    return { reapedWorkerIds, hasFreedTasks };
  });
}

/** Returns true if the worker still owned tasks. */
export async function deregisterWorker(db: Database, { workerId, epoch }: Fence, now: string): Promise<boolean> {
  return db.transaction(async (transaction) => {
    const [workerRows] = await transaction.run([
      sql(`SELECT id FROM pawl_workers WHERE ${matchesFence} FOR UPDATE`, [workerId, epoch]),
    ]);
    const hasFreedTasks = workerRows?.rows.length === 1 && (await markDead(transaction, [workerId], now));
    await transaction.commit([]);
    return hasFreedTasks;
  });
}

/** Returns whether tasks were freed. The caller has locked the rows of the workers. */
async function markDead(session: Session, workerIds: readonly string[], now: string): Promise<boolean> {
  if (workerIds.length === 0) return false;
  const setDead = sql(
    `UPDATE pawl_workers ${forcePrimaryKey} SET live = 0, executing = NULL, loop_lag_ms = NULL WHERE id IN (${placeholders(workerIds)})`,
    workerIds,
  );
  const [, ...owned] = await session.run([setDead, ...workerIds.map((id) => selectOwnedTasks(id))]);
  const freeUpdates = owned.flatMap(({ rows }, index) =>
    freeStatements(
      workerIds[index] as string,
      rows.map((row) => row.run_id as string),
      now,
    ),
  );
  await session.run([...freeUpdates, ...workerIds.map(deleteSlotsOf)]);
  return freeUpdates.length > 0;
}

/** Slots that runs hold until they end have no owner. */
const deleteSlotsOf = (workerId: string): Sql => sql("DELETE FROM pawl_slots WHERE owner = ?", [workerId]);

/**
 * The caller has read the worker's tasks before. The worker is dead or its row is locked, so it cannot have claimed
 * more tasks since.
 */
function freeStatements(workerId: string, runIds: readonly string[], now: string): Sql[] {
  const set = `state = ${taskState.ready}, rank_no = -priority, due_at = ${now}, owner = NULL, epoch = NULL`;
  return statementsPerKeyPart(runIds, (part) =>
    sql(`UPDATE pawl_tasks ${forcePrimaryKey} SET ${set} WHERE run_id IN (${placeholders(part)}) AND owner = ?`, [
      ...part,
      workerId,
    ]),
  );
}
