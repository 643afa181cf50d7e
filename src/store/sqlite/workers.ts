/**
 * Fences, heartbeats, and the tasks of dead workers. Leases are always measured in real time: `now` is the process's
 * clock, while `at` may come from a virtual clock.
 */

import type { Runtime } from "../../runtime/runtime.js";
import type { Fence, HeartbeatResult, ScheduleInterest, WorkerInfo } from "../contract/store.js";
import type { SqlRow } from "../sql/dialect.js";
import { nextLookSql } from "../sql/limits/looks.js";
import { nextScheduleSql, noInterest } from "../sql/next-schedule.js";
import { type LoadColumns, numberOrNull, taskState } from "../sql/records.js";
import { nextStartDeadlineSql } from "../sql/start-deadlines.js";
import type { Connection } from "./connection.js";

const selectFence = "SELECT 1 FROM pawl_workers WHERE id = ? AND epoch = ? AND live = 1";

const upsertWorker = `INSERT INTO pawl_workers (id, name, host, pid, port, routes, lease_ms, schedule_set, epoch, live, started_at, heartbeat_at)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?, 1, 1, ?, ?)
  ON CONFLICT (id) DO UPDATE SET name = excluded.name, host = excluded.host, pid = excluded.pid,
  port = excluded.port, routes = excluded.routes, schedule_set = excluded.schedule_set, lease_ms = excluded.lease_ms, epoch = epoch + 1, live = 1,
  started_at = excluded.started_at, heartbeat_at = excluded.heartbeat_at, executing = NULL, loop_lag_ms = NULL
  RETURNING epoch`;

const updateHeartbeat = `UPDATE pawl_workers SET heartbeat_at = ?, executing = coalesce(?, executing), loop_lag_ms = coalesce(?, loop_lag_ms)
  WHERE id = ? AND epoch = ? AND live = 1`;
const selectExpiredWorkers =
  "SELECT id FROM pawl_workers WHERE live = 1 AND heartbeat_at + lease_ms < ? AND id <> ? ORDER BY id";
const setWorkerDead = "UPDATE pawl_workers SET live = 0, executing = NULL, loop_lag_ms = NULL WHERE id = ?";

/** Scans all open tasks, once per dead worker, because an index on the owner would cost time in every claim. */
const freeTasks = `UPDATE pawl_tasks SET state = ${taskState.ready}, due_at = ?, owner = NULL, epoch = NULL
  WHERE owner = ?`;

/** Slots that runs hold until they end have no owner. */
const freeSlots = "DELETE FROM pawl_slots WHERE owner = ?";

/**
 * One statement reads the runs with messages, whether a lease has expired, the paused queues and what the worker must know
 * about its schedules, because an idle worker sends heartbeats all day.
 */
const selectHeartbeatReport = `SELECT 'run_with_messages' AS kind, run_id AS subject FROM pawl_tasks WHERE owner = ? AND owner IS NOT NULL AND pending_messages > 0
  UNION ALL SELECT 'expired_lease', NULL WHERE EXISTS (SELECT 1 FROM pawl_workers WHERE live = 1 AND heartbeat_at + lease_ms < ?)
  UNION ALL SELECT 'paused_queue', name FROM pawl_queues
  UNION ALL SELECT 'next_schedule', ${nextScheduleSql("pawl_schedules", "''", "?")}
  UNION ALL SELECT 'next_start_deadline', ${nextStartDeadlineSql("pawl_start_deadlines")}
  UNION ALL SELECT 'next_offer', ${nextLookSql("pawl_lanes")}
  UNION ALL SELECT 'schedule_set', set_key FROM pawl_schedule_apps WHERE app = ?
  ORDER BY subject`;

/**
 * Inside a write transaction the result stays valid until the transaction ends: marking a worker dead needs the same
 * write lock.
 */
export function holdsFence(db: Connection, { workerId, epoch }: Fence): boolean {
  return db.get(selectFence, workerId, epoch) !== undefined;
}

/** @param load what the worker reports of itself, encoded; null leaves a column as it is */
export function renewLease(
  db: Connection,
  { workerId, epoch }: Fence,
  now: number,
  load: LoadColumns = [null, null],
): boolean {
  return db.run(updateHeartbeat, now, ...load, workerId, epoch) === 1;
}

interface Registration {
  readonly fence: Fence;
  /** The number of tasks of the worker's earlier epochs that were made ready. */
  readonly freedTaskCount: number;
}

export function registerWorker(db: Connection, worker: WorkerInfo, at: number, now: number): Registration {
  const { id, name, host, pid, port, routes, leaseMs, scheduleSet = null } = worker;
  const row = db.get(upsertWorker, id, name, host, pid, port, JSON.stringify(routes), leaseMs, scheduleSet, now, now);
  const epoch = Number(row?.epoch);
  if (epoch > 1) db.run(freeSlots, id);
  return { fence: { workerId: id, epoch }, freedTaskCount: epoch === 1 ? 0 : db.run(freeTasks, at, id) };
}

/** What the worker says with a heartbeat. */
interface HeartbeatContent {
  readonly load: LoadColumns;
  readonly schedules: ScheduleInterest | undefined;
}

/** The result of a heartbeat under a dead fence. */
export const fencedHeartbeat: Omit<HeartbeatResult, "reapedWorkerIds"> = {
  isAlive: false,
  ownedWithMessages: [],
  pausedQueues: [],
  nextScheduleInMs: null,
  nextStartDeadlineInMs: null,
  nextOfferInMs: null,
  scheduleSetInForce: null,
};

/** Reads the rows of the report that are about schedules, start deadlines and offers of slots. */
export function scheduleReport(
  rows: readonly SqlRow[],
  at: number,
): Pick<HeartbeatResult, "nextScheduleInMs" | "nextStartDeadlineInMs" | "nextOfferInMs" | "scheduleSetInForce"> {
  const subjectOf = (kind: string) => rows.find((row) => row.kind === kind)?.subject ?? null;
  const untilInstantOf = (kind: string) => {
    const instant = numberOrNull(subjectOf(kind));
    return instant === null ? null : instant - at;
  };
  return {
    nextScheduleInMs: untilInstantOf("next_schedule"),
    nextStartDeadlineInMs: untilInstantOf("next_start_deadline"),
    nextOfferInMs: untilInstantOf("next_offer"),
    scheduleSetInForce: subjectOf("schedule_set") as string | null,
  };
}

/**
 * Executes two statements that commit separately. Only an expired lease, which is rare, needs a transaction (`reap`).
 */
export function heartbeat(
  db: Connection,
  fence: Fence,
  { load, schedules: { app, setKey } = noInterest }: HeartbeatContent,
  at: number,
  runtime: Runtime,
): Omit<HeartbeatResult, "reapedWorkerIds"> & { readonly hasExpiredWorkers: boolean } {
  if (!renewLease(db, fence, runtime.now(), load)) return { ...fencedHeartbeat, hasExpiredWorkers: false };
  const reportRows = db.all(selectHeartbeatReport, fence.workerId, runtime.now(), setKey, app);
  const subjectsOf = (kind: string) =>
    reportRows.filter((row) => row.kind === kind).map((row) => row.subject as string);
  return {
    isAlive: true,
    ownedWithMessages: subjectsOf("run_with_messages"),
    pausedQueues: subjectsOf("paused_queue"),
    hasExpiredWorkers: subjectsOf("expired_lease").length > 0,
    ...scheduleReport(reportRows, at),
  };
}

/**
 * @param callerId the worker that reaps the others. It has just renewed its own lease; on a very busy machine, a short lease
 * may have expired again meanwhile.
 */
export function reap(db: Connection, callerId: string, at: number, now: number): string[] {
  const expiredWorkerIds = db.all(selectExpiredWorkers, now, callerId).map((row) => row.id as string);
  for (const id of expiredWorkerIds) markDead(db, id, at);
  return expiredWorkerIds;
}

export function deregisterWorker(db: Connection, fence: Fence, at: number): void {
  if (holdsFence(db, fence)) markDead(db, fence.workerId, at);
}

function markDead(db: Connection, workerId: string, at: number): void {
  db.run(setWorkerDead, workerId);
  db.run(freeSlots, workerId);
  db.run(freeTasks, at, workerId);
}
