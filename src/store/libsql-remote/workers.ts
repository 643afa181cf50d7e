/** Plans for fences, heartbeats and dead workers. Leases always use the server's real clock, never a virtual one. */

import type { Fence, HeartbeatResult, ScheduleInterest, WorkerInfo } from "../contract/store.js";
import { nextLookSql } from "../sql/limits/looks.js";
import { nextScheduleSql, noInterest } from "../sql/next-schedule.js";
import { type LoadColumns, taskState } from "../sql/records.js";
import { nextStartDeadlineSql } from "../sql/start-deadlines.js";
import { fencedHeartbeat, scheduleReport } from "../sqlite/workers.js";
import type { Result } from "./driver.js";
import { serverNow } from "./server-clock.js";
import { StatementPlan } from "./statement-plan.js";

const upsertWorker = `INSERT INTO pawl_workers (id, name, host, pid, port, routes, lease_ms, schedule_set, epoch, live, started_at, heartbeat_at)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?, 1, 1, ${serverNow}, ${serverNow})
  ON CONFLICT (id) DO UPDATE SET name = excluded.name, host = excluded.host, pid = excluded.pid,
  port = excluded.port, routes = excluded.routes, schedule_set = excluded.schedule_set, lease_ms = excluded.lease_ms, epoch = epoch + 1, live = 1,
  started_at = excluded.started_at, heartbeat_at = excluded.heartbeat_at, executing = NULL, loop_lag_ms = NULL
  RETURNING epoch`;

const renewLease = `UPDATE pawl_workers SET heartbeat_at = ${serverNow}, executing = coalesce(?, executing),
  loop_lag_ms = coalesce(?, loop_lag_ms)
  WHERE id = ? AND epoch = ? AND live = 1`;

/**
 * One statement reads the runs with messages, whether a lease has expired, the paused queues, the server's time and what the
 * worker must know about its schedules, because an idle worker sends heartbeats all day.
 */
const selectHeartbeatReport = `SELECT 'run_with_messages' AS kind, run_id AS subject FROM pawl_tasks WHERE owner = ? AND owner IS NOT NULL AND pending_messages > 0
  UNION ALL SELECT 'expired_lease', NULL
    WHERE EXISTS (SELECT 1 FROM pawl_workers WHERE live = 1 AND heartbeat_at + lease_ms < ${serverNow})
  UNION ALL SELECT 'paused_queue', name FROM pawl_queues
  UNION ALL SELECT 'now', ${serverNow}
  UNION ALL SELECT 'next_schedule', ${nextScheduleSql("pawl_schedules", "''", "?")}
  UNION ALL SELECT 'next_start_deadline', ${nextStartDeadlineSql("pawl_start_deadlines")}
  UNION ALL SELECT 'next_offer', ${nextLookSql("pawl_lanes")}
  UNION ALL SELECT 'schedule_set', set_key FROM pawl_schedule_apps WHERE app = ?
  ORDER BY subject`;

const freeTasks = `UPDATE pawl_tasks SET state = ${taskState.ready}, due_at = ?, owner = NULL, epoch = NULL`;
/** Scans all open tasks, unless the worker is new (epoch 1). */
const freeTasksOfEarlierEpochs = `${freeTasks} WHERE rowid IN (SELECT t.rowid FROM pawl_workers w CROSS JOIN pawl_tasks t
  WHERE w.id = ? AND w.epoch > 1 AND t.owner = w.id)`;
const freeTasksOfDead = `${freeTasks} WHERE owner IN (SELECT id FROM pawl_workers WHERE live = 0)`;
const freeTasksIfDeregistered = `${freeTasks} WHERE owner = ? AND changes() = 1`;

/** Slots that runs hold until they end have no owner. */
const freeSlotsOfEarlierEpochs =
  "DELETE FROM pawl_slots WHERE owner = ? AND epoch < (SELECT w.epoch FROM pawl_workers w WHERE w.id = owner)";
const freeSlotsOfDead = "DELETE FROM pawl_slots WHERE owner IN (SELECT id FROM pawl_workers WHERE live = 0)";

const markExpiredDead = `UPDATE pawl_workers SET live = 0, executing = NULL, loop_lag_ms = NULL WHERE live = 1 AND heartbeat_at + lease_ms < ${serverNow} AND id <> ? RETURNING id`;
const markDead =
  "UPDATE pawl_workers SET live = 0, executing = NULL, loop_lag_ms = NULL WHERE id = ? AND epoch = ? AND live = 1";

/** A plan, and the function that reads its results. */
interface ReadablePlan<T> {
  readonly plan: StatementPlan<never>;
  resultOf(results: readonly Result[]): T;
}

/** Registers the worker and makes the tasks ready that its earlier epochs still own. */
export function planRegisterWorker(
  worker: WorkerInfo,
  at: number,
): ReadablePlan<{ readonly fence: Fence; readonly hasFreedTasks: boolean }> {
  const { id, name, host, pid, port, routes, leaseMs, scheduleSet = null } = worker;
  const plan = new StatementPlan<never>();
  const registrationIndex = plan.add(
    upsertWorker,
    ...[id, name, host, pid, port, JSON.stringify(routes), leaseMs, scheduleSet],
  );
  const freedIndex = plan.add(freeTasksOfEarlierEpochs, at, id);
  plan.add(freeSlotsOfEarlierEpochs, id);
  return {
    plan,
    resultOf: (results) => ({
      fence: { workerId: id, epoch: Number(results[registrationIndex]?.rows[0]?.epoch) },
      hasFreedTasks: (results[freedIndex]?.rowsAffected ?? 0) > 0,
    }),
  };
}

export interface Heartbeat extends Omit<HeartbeatResult, "reapedWorkerIds"> {
  readonly hasExpiredWorkers: boolean;
  /** The server's time. */
  readonly now: number;
}

/**
 * @param load what the worker reports of itself, encoded; null leaves a column as it is
 * @param virtualNow the instant of a virtual clock; null: the store has none
 */
export function planHeartbeat(
  { workerId, epoch }: Fence,
  load: LoadColumns,
  { app, setKey }: ScheduleInterest = noInterest,
  virtualNow: number | null = null,
): ReadablePlan<Heartbeat> {
  const plan = new StatementPlan<never>();
  const renewalIndex = plan.add(renewLease, ...load, workerId, epoch);
  const reportIndex = plan.add(selectHeartbeatReport, workerId, setKey, app);
  return {
    plan,
    resultOf: (results) => {
      const reportRows = results[reportIndex]?.rows ?? [];
      const subjectsOf = (kind: string) =>
        reportRows.filter((row) => row.kind === kind).map((row) => row.subject as string);
      const now = Number(subjectsOf("now")[0]);
      if (results[renewalIndex]?.rowsAffected !== 1) return { ...fencedHeartbeat, hasExpiredWorkers: false, now };
      return {
        isAlive: true,
        ownedWithMessages: subjectsOf("run_with_messages"),
        pausedQueues: subjectsOf("paused_queue"),
        hasExpiredWorkers: subjectsOf("expired_lease").length > 0,
        ...scheduleReport(reportRows, virtualNow ?? now),
        now,
      };
    },
  };
}

/**
 * A worker whose lease expires between the two statements is left for the reap of a later heartbeat.
 *
 * @param callerId the worker that reaps the others. It has just renewed its own lease; on a very busy machine, a short lease
 * may have expired again meanwhile.
 */
export function planReap(callerId: string, at: number): ReadablePlan<string[]> {
  const plan = new StatementPlan<never>();
  const reapedIndex = plan.add(markExpiredDead, callerId);
  plan.add(freeTasksOfDead, at);
  plan.add(freeSlotsOfDead);
  return { plan, resultOf: (results) => (results[reapedIndex]?.rows ?? []).map((row) => row.id as string).sort() };
}

export function planDeregisterWorker({ workerId, epoch }: Fence, at: number): StatementPlan<never> {
  const plan = new StatementPlan<never>();
  plan.add(markDead, workerId, epoch);
  plan.add(freeTasksIfDeregistered, at, workerId);
  plan.add(freeSlotsOfDead);
  return plan;
}

/**
 * Renews the lease at the end of a transactional step, because no heartbeat could renew it while the step's transaction
 * had the write lock.
 */
export function planRenewal(plan: StatementPlan<unknown>, { workerId, epoch }: Fence): void {
  plan.add(renewLease, null, null, workerId, epoch);
}
